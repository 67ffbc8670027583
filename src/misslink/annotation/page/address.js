// The address holds who labels and which case is open: #annotator=anna&case=4, counted from 1.

export const readAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const asked = new URLSearchParams(location.search);
  const number = (location.hash ? given : asked).get("case") ?? "";
  return {
    annotator: given.get("annotator") ?? asked.get("annotator") ?? "",
    at: /^[1-9]\d{0,8}$/.test(number) ? Number(number) - 1 : null,
    end: number === "end",
  };
};

// `place` is a position from 0, "end", or null for none.
export const putAddress = (annotator, place, push) => {
  const parts = new URLSearchParams({ annotator });
  if (place !== null) parts.set("case", place === "end" ? "end" : String(place + 1));
  const hash = `#${parts}`;
  if (hash === location.hash) return;
  try {
    if (push) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  } catch {
    // Browsers refuse many changes in a short time; the next one writes it again.
  }
};

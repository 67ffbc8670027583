// The list: only the rows in view stand in the document, each at its place in the whole height.

const OVERSCAN = 6; // rows beyond each edge, so that a fast scroll meets none that is missing

const rowElement = (row, place, total) => el("div", {
  class: "row", role: "option", id: `row-${row.number}`, "data-number": row.number,
  "aria-setsize": total, "aria-posinset": place + 1,
},
el("span", { class: "row-cause" }, causeChip(row)),
said("span", "question", row.question),
el("span", { class: "outcome" }, outcomeOf(row)));

// `rows` are those shown, `active` the place of the one that the keyboard is on.
const makeList = (box, sheet, choose) => {
  const list = { rows: [], active: 0, chosen: 0 };
  const drawn = new Map(); // by place
  let height = 0;
  let waiting = false;

  const measure = () => {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    height = parseFloat(getComputedStyle(box).getPropertyValue("--row")) * rem;
  };

  const draw = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - OVERSCAN);
    const last = Math.min(list.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / height) + OVERSCAN);
    const wanted = new Set([list.active].filter((place) => place < list.rows.length));
    for (let place = first; place < last; place += 1) wanted.add(place);
    for (const [place, element] of drawn) {
      if (!wanted.has(place)) {
        element.remove();
        drawn.delete(place);
      }
    }
    for (const place of wanted) {
      if (drawn.has(place)) continue;
      const element = rowElement(list.rows[place], place, list.rows.length);
      element.style.top = `${place * height}px`;
      drawn.set(place, element);
      sheet.append(element);
    }
    mark();
  };

  const mark = () => {
    for (const [place, element] of drawn) {
      element.classList.toggle("active", place === list.active);
      element.setAttribute("aria-selected", String(list.rows[place].number === list.chosen));
    }
    const on = list.rows[list.active];
    if (on) box.setAttribute("aria-activedescendant", `row-${on.number}`);
    else box.removeAttribute("aria-activedescendant");
  };

  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };

  list.bringIntoView = () => {
    const top = list.active * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
  };

  // All anew: other rows, or rows of another height.
  list.refresh = () => {
    measure();
    for (const element of drawn.values()) element.remove();
    drawn.clear();
    sheet.style.height = `${list.rows.length * height}px`;
    list.bringIntoView();
    draw();
  };

  list.set = (rows) => {
    const on = list.rows[list.active]?.number;
    list.rows = rows;
    const place = rows.findIndex((row) => row.number === (list.chosen || on));
    list.active = Math.max(0, place);
    if (place < 0) box.scrollTop = 0;
    list.refresh();
  };

  list.move = (place) => {
    list.active = Math.max(0, Math.min(list.rows.length - 1, place));
    list.bringIntoView();
    draw();
  };

  list.choose = (number) => {
    list.chosen = number;
    const place = list.rows.findIndex((row) => row.number === number);
    if (place >= 0) list.active = place;
    list.refresh();
  };

  list.page = () => Math.max(1, Math.floor(box.clientHeight / height) - 1);

  box.addEventListener("scroll", later, { passive: true });
  box.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) choose(Number(row.dataset.number));
  });
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) {
      width = box.clientWidth;
      list.refresh();
    } else later();
  }).observe(box);
  return list;
};

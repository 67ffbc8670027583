// The table of cases: only the rows in view are in the document, each at its place in the height.

const OVERSCAN = 6; // rows beyond each edge, so that a fast scroll meets none that is missing

// A text with each of the terms marked.
const highlighted = (text, terms) => {
  const lower = text.toLowerCase();
  const [at, term] = terms.map((one) => [lower.indexOf(one), one]).filter(([place]) => place >= 0)
    .sort(([a], [b]) => a - b)[0] ?? [-1];
  if (at < 0) return [visible(text)];
  const end = at + term.length;
  return [visible(text.slice(0, at)), el("mark", {}, visible(text.slice(at, end))), ...highlighted(text.slice(end), terms)];
};

// How many claims are unsupported; where none is, how many the reference contradicts.
const claimsWords = (row) => {
  if (!row.unsupported && row.wrong) return `${row.wrong} of ${row.claimed} wrong`;
  return row.claimed ? `${row.unsupported} of ${row.claimed}` : stateOf(row) === "failed" && row.answered === "declined" ? "declined" : "";
};

// A row that is filled again and again: to make one takes longer than a frame has time for all.
const makeRow = () => {
  const chip = el("span");
  const cell = (classes, ...content) => el("span", { class: classes, role: "gridcell" }, ...content);
  const [question, claim] = [userText("span", "question"), userText("span", "small excerpt")];
  const [claims, rank, missed] = [cell("claims-cell"), cell("rank-cell"), cell("missed-cell")];
  const element = el("div", { class: "row", role: "row" },
    cell("row-failure", chip), cell("row-text", question, claim), claims, rank, missed);
  const write = (at, text) => {
    if (at.textContent !== text) at.textContent = text;
  };
  const fill = (row, place, matches) => {
    element.id = `row-${row.number}`;
    element.dataset.number = row.number;
    element.ariaRowIndex = place + 2; // the heads are the first
    chip.className = chipClass(row);
    write(chip, failureLabel(row));
    if (matches) {
      question.replaceChildren(...highlighted(row.question, matches.terms));
      claim.replaceChildren(...highlighted(matches.get(row.number) ?? "", matches.terms));
    } else {
      write(question, visible(row.question));
      write(claim, visible(row.claim ?? ""));
    }
    write(claims, claimsWords(row));
    claims.dataset.unit = row.unsupported ? " unsupported" : "";
    claims.classList.toggle("quiet", Boolean(row.claimed && !row.unsupported && !row.wrong));
    write(rank, row.best_rank ? grouped(row.best_rank) : row.keyword_rank ? `keywords ${grouped(row.keyword_rank)}` : "");
    write(missed, row.miss_types ? data.miss_types[row.miss_types[0]] : "");
  };
  return { element, fill };
};

// `rows` are those shown, `active` the place of the one that the keyboard is on.
const makeList = (box, sheet, choose) => {
  const list = { rows: [], active: 0, chosen: 0, matches: null };
  const drawn = new Map(); // by place
  const spare = [];
  const heads = box.querySelector(".heads");
  const room = () => box.clientHeight - heads.offsetHeight;
  let [height, waiting] = [0, false];

  const measure = () => {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    height = parseFloat(getComputedStyle(box).getPropertyValue("--row")) * rem;
  };

  const mark = () => {
    for (const [place, { element }] of drawn) {
      element.classList.toggle("active", place === list.active);
      element.setAttribute("aria-selected", String(list.rows[place].number === list.chosen));
    }
    const on = list.rows[list.active];
    if (on) box.setAttribute("aria-activedescendant", `row-${on.number}`);
    else box.removeAttribute("aria-activedescendant");
  };

  const draw = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - OVERSCAN);
    const last = Math.min(list.rows.length, Math.ceil((box.scrollTop + room()) / height) + OVERSCAN);
    const wanted = new Set([list.active].filter((place) => place < list.rows.length));
    for (let place = first; place < last; place += 1) wanted.add(place);
    const missing = [...wanted].filter((place) => !drawn.has(place));
    for (const [place, row] of drawn) {
      if (wanted.has(place)) continue;
      drawn.delete(place);
      spare.push(row);
    }
    for (const place of missing) {
      const row = spare.pop() ?? makeRow();
      row.fill(list.rows[place], place, list.matches);
      row.element.style.top = `${place * height}px`;
      drawn.set(place, row);
      if (!row.element.isConnected) sheet.append(row.element);
    }
    for (const { element } of spare.splice(0)) element.remove();
    mark();
  };

  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };

  const bringIntoView = () => {
    const top = list.active * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + room()) box.scrollTop = top + height - room();
  };

  // Everything again: other rows, or rows of another height.
  const refresh = () => {
    measure();
    spare.push(...drawn.values());
    drawn.clear();
    sheet.style.height = `${list.rows.length * height}px`;
    box.ariaRowCount = list.rows.length + 1;
    bringIntoView();
    draw();
  };

  // The keyboard stays with the open case; without one it begins at the first row.
  list.set = (rows, matches) => {
    list.rows = rows;
    list.matches = matches;
    const place = list.chosen ? rows.findIndex((row) => row.number === list.chosen) : -1;
    list.active = Math.max(0, place);
    if (place < 0) box.scrollTop = 0;
    refresh();
  };

  list.move = (place) => {
    list.active = Math.max(0, Math.min(list.rows.length - 1, place));
    bringIntoView();
    draw();
  };

  list.choose = (number) => {
    list.chosen = number;
    const place = list.rows.findIndex((row) => row.number === number);
    if (place >= 0) list.active = place;
    refresh();
  };

  list.page = () => Math.max(1, Math.floor(room() / height) - 1);

  box.addEventListener("scroll", later, { passive: true });
  box.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) choose(Number(row.dataset.number));
  });
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) {
      width = box.clientWidth;
      refresh();
    } else later();
  }).observe(box);
  return list;
};

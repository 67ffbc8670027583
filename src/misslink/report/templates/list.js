// The list: only the rows in view stand in the document, each at its place in the whole height.

const OVERSCAN = 6; // rows beyond each edge, so that a fast scroll meets none that is missing

// A row that is filled again and again: to make one takes longer than a frame has time for all.
const makeRow = () => {
  const [chip, question, outcome] = [el("span"), said("span", "question"), el("span", { class: "outcome" })];
  const element = el("div", { class: "row", role: "option" },
    el("span", { class: "row-failure" }, chip), question, outcome);
  const write = (at, text) => {
    if (at.textContent !== text) at.textContent = text;
  };
  const fill = (row, place, total) => {
    element.id = `row-${row.number}`;
    element.dataset.number = row.number;
    element.ariaPosInSet = place + 1;
    element.ariaSetSize = total;
    chip.className = chipClass(row);
    write(chip, failureLabel(row));
    write(question, row.question);
    write(outcome, lineOf(row));
  };
  return { element, fill };
};

// `rows` are those shown, `active` the place of the one that the keyboard is on.
const makeList = (box, sheet, choose) => {
  const list = { rows: [], active: 0, chosen: 0 };
  const drawn = new Map(); // by place
  const spare = [];
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
    const missing = [...wanted].filter((place) => !drawn.has(place));
    for (const [place, row] of drawn) {
      if (wanted.has(place)) continue;
      drawn.delete(place);
      spare.push(row);
    }
    for (const place of missing) {
      const row = spare.pop() ?? makeRow();
      row.fill(list.rows[place], place, list.rows.length);
      row.element.style.top = `${place * height}px`;
      drawn.set(place, row);
      if (!row.element.isConnected) sheet.append(row.element);
    }
    for (const { element } of spare.splice(0)) element.remove();
    mark();
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
    spare.push(...drawn.values());
    drawn.clear();
    sheet.style.height = `${list.rows.length * height}px`;
    list.bringIntoView();
    draw();
  };

  // The keyboard stays with the open case; without one it begins at the first row.
  list.set = (rows) => {
    list.rows = rows;
    const place = list.chosen ? rows.findIndex((row) => row.number === list.chosen) : -1;
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

// The explorer: the address, the fields, the table and the case follow one view.

const PRINTED = 300; // rows of the list on paper
const WHOLE = 10; // failed cases on paper with their claims

const explore = () => {
  const at = (id) => document.getElementById(id);
  const [pane, rows, panes, shown] = ["pane", "rows", "panes", "shown"].map(at);
  const known = new Map(data.rows.map((row) => [row.number, row]));
  let view = emptyView();
  let open = 0; // number of the case in the pane
  let matches = data.rows;

  const showCount = (busy) => {
    const of = PARTIAL ? "of the worst" : "of";
    shown.textContent = busy ? "Searching\u2026" : `${grouped(matches.length)} ${of} ${grouped(data.rows.length)}`;
    if (PARTIAL) at("elsewhere").replaceChildren(...(busy ? [] : elsewhereOf(view, matches.length)));
    rows.setAttribute("aria-busy", String(Boolean(busy)));
  };

  const narrow = () => {
    const ids = new Set(view.ids); // of a large run they are thousands
    const narrowed = data.rows.filter((row) => fits(row, view) && (!ids.size || ids.has(row.number)));
    const terms = termsOf(view.q);
    const put = (found) => {
      matches = ordered(found ? narrowed.filter((row) => found.has(row.number)) : narrowed, view.sort);
      list.set(matches, found && Object.assign(found, { terms }));
      showCount();
    };
    for (const head of rows.querySelectorAll("[role=columnheader]")) {
      const isKey = head.dataset.sort === columnOf(view.sort);
      head.setAttribute("aria-sort", isKey ? (descending(view.sort) ? "descending" : "ascending") : "none");
    }
    endSearch();
    if (!terms.length) return put();
    showCount(true);
    return search(narrowed, terms, put);
  };

  // By a key or a click the browser knows whether to show where the focus is; an address needs none.
  const [byHand, byAddress] = [{ preventScroll: true }, { preventScroll: true, focusVisible: false }];

  const title = document.title;
  let drawing = 0; // the latest wins: a body may have to be decompressed first
  let body = null;
  const draw = async (take) => {
    const row = known.get(view.case);
    drawing += 1;
    const mine = drawing;
    const same = open === (row?.number ?? 0);
    if (row && !same) {
      const read = await bodyOf(row.number);
      if (mine !== drawing) return;
      body = read;
    }
    open = row?.number ?? 0;
    pane.hidden = !row;
    panes.classList.toggle("beside", Boolean(row));
    document.title = row ? `${visible(row.question)} \u00b7 ${title}` : title;
    if (!same) {
      const place = matches.findIndex((one) => one.number === open) + 1;
      const turn = (step) => turnTo(matches[place - 1 + step]?.number);
      pane.replaceChildren(...(row ? [barOf(row, body, place, matches.length, turn, close), drawCase(row, body)] : []));
      pane.scrollTop = 0;
      list.choose(open);
    }
    if (!row) return;
    if (view.claim && !showClaim(pane, body, view.claim)) lack("claim");
    if (!view.claim && !same) {
      const bad = body.claims.find((claim) => claim.support !== "supported")
        ?? body.claims.find((claim) => claim.wrong) ?? body.claims[0];
      if (bad) showClaim(pane, body, bad.number, false);
    }
    if (!view.claim && view.passage && !showPassage(pane, view.passage)) lack("passage");
    if (take && !same && !view.claim && !view.passage) {
      pane.focus(take);
      panes.scrollIntoView({ block: "nearest" });
    }
    if (take === byAddress) bring();
  };

  // What an address names and this report does not have leaves the address; a line says so.
  let strange = [];
  const showUnknown = (names, away = 0) => {
    strange = names;
    at("astray").replaceChildren(...[describeUnknown(names), ...(away ? [" ", ...awayOf(away)] : [])].filter(Boolean));
  };
  const lack = (part) => {
    showUnknown([...strange, `${part} ${view[part]} of case ${view.case}`]);
    view = { ...view, [part]: 0 };
    putAddress(view);
  };

  // The filters and the case under them; a claim stays in view where the page itself scrolls.
  const bring = () => {
    const shownInPage = (view.claim || view.passage) && getComputedStyle(pane).overflowY === "visible";
    if (!shownInPage) at("explorer").scrollIntoView();
  };

  const turnTo = (number) => {
    if (!known.has(number)) return;
    const push = !open;
    view = { ...view, case: number, claim: 0, passage: 0 };
    showUnknown([]);
    putAddress(view, push);
    draw(byHand);
  };

  let closing = null; // the view to keep when going back has closed the case
  const close = () => {
    view = { ...view, case: 0, claim: 0, passage: 0 };
    if (history.state?.opened) {
      closing = view;
      history.back();
    } else putAddress(view);
    draw();
    rows.focus({ preventScroll: true });
  };

  const list = makeList(rows, at("all-rows"), turnTo);

  const changed = (part) => {
    view = { ...view, ...(typeof part === "function" ? part(view) : part) };
    showUnknown([]);
    putAddress(view);
    filters.show(view);
    narrow();
  };
  const filters = makeFilters(at, changed);

  const follow = () => {
    const hash = location.hash.slice(1);
    if (closing) {
      [view, closing] = [closing, null];
      showView("cases");
      putAddress(view);
      setTimeout(() => rows.focus({ preventScroll: true })); // going back to a fragment takes it away
      return;
    }
    if (!isSelection(hash)) {
      view = { ...view, case: 0, claim: 0, passage: 0 };
    } else {
      const [read, unknown] = readView(hash);
      const [kept, lost, away] = straighten(read, known);
      view = kept;
      showUnknown([...lost, ...unknown], away);
      if (strange.length) putAddress(view);
      filters.show(view);
      narrow();
    }
    draw(byAddress);
    if (isSelection(hash) && !view.case) scrollTo(0, 0);
  };

  const toKey = (event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (step) {
      if (at("cases").matches(".closed")) location.hash = "cases";
      showView("cases");
      list.move(list.active + (list.rows[list.active]?.number === open || !open ? step : 0));
      const row = list.rows[list.active];
      if (open && row) turnTo(row.number);
      else {
        rows.focus({ preventScroll: true });
        panes.scrollIntoView({ block: "nearest" });
      }
    } else if (event.key === "/") {
      if (open && !filters.field.checkVisibility()) close(); // on a narrow screen the case covers it
      if (at("cases").matches(".closed")) location.hash = "cases";
      showView("cases");
      filters.field.focus();
    } else if (event.key === "?") at("keys-shown").showModal();
    else if (event.key === "Escape" && open) close();
    else return;
    event.preventDefault();
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea, dialog, [contenteditable]")) return;
    toKey(event);
  });

  rows.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== rows) return;
    const places = {
      ArrowDown: list.active + 1, ArrowUp: list.active - 1, Home: 0, End: list.rows.length - 1,
      PageDown: list.active + list.page(), PageUp: list.active - list.page(),
    };
    if (event.key in places) list.move(places[event.key]);
    else if (event.key === "Enter" || event.key === " ") turnTo(list.rows[list.active]?.number);
    else return;
    event.preventDefault();
  });

  filters.field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") rows.focus();
    if (event.key !== "Escape") return;
    event.preventDefault();
    if (filters.field.value) filters.empty();
    else filters.field.blur();
  });

  rows.addEventListener("click", (event) => {
    const key = event.target.closest("[role=columnheader]")?.dataset.sort;
    if (key) changed({ sort: view.sort === key ? `-${key}` : key });
  });

  pane.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { claim, showMissed, showPassage: passage, toggle } =
      event.target.closest("[data-claim], [data-show-missed], [data-show-passage], [data-toggle]")?.dataset ?? {};
    if (claim) {
      event.preventDefault();
      view = { ...view, claim: Number(claim), passage: 0 };
      putAddress(view);
      showClaim(pane, body, view.claim);
    } else if (showMissed) showPassage(pane, showMissed, "missed");
    else if (passage) showPassage(pane, passage);
    else if (toggle) {
      const raw = pane.querySelector(".answer-text");
      raw.hidden = !raw.hidden;
      pane.querySelector(".answer").hidden = !raw.hidden;
      event.target.setAttribute("aria-pressed", String(!raw.hidden));
    }
  });

  at("copy-ids").addEventListener("click", () =>
    copy(matches.map((row) => row.id).join("\n"), at("exported"), at("copied-ids")));
  at("save-csv").addEventListener("click", () => saveCsv(matches));
  at("show-keys").addEventListener("click", () => at("keys-shown").showModal());
  at("hide-keys").addEventListener("click", () => at("keys-shown").close());
  at("more").addEventListener("click", () => {
    const more = at("more-filters");
    more.hidden = !more.hidden;
    at("more").setAttribute("aria-expanded", String(!more.hidden));
  });
  // A second click on the same link changes no address, so the click itself is heard as well.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && !pane.contains(link) && isSelection(link.getAttribute("href")) && link.getAttribute("href") === location.hash) follow();
  });
  addEventListener("popstate", follow);

  // Paper does not wait for a body to be decompressed, so the first ones are read beforehand.
  const bodies = new Map();
  const failedFirst = () => matches.filter((row) => stateOf(row) === "failed").slice(0, WHOLE);
  const readAhead = async () => {
    for (const row of failedFirst()) if (!bodies.has(row.number)) bodies.set(row.number, await bodyOf(row.number));
  };
  setTimeout(readAhead, 0);

  // On paper the list is plain rows, then the first failed cases; the pane prints as it stands.
  const toPaper = () => {
    const left = matches.length - PRINTED;
    const line = (row) => el("li", { value: row.number }, el("span", { class: chipClass(row) }, failureLabel(row)), " ",
      userText("span", "question", row.question), " ", el("span", { class: "small" }, outcomeOf(row)));
    at("printed").replaceChildren(
      el("ol", {}, matches.slice(0, PRINTED).map(line)),
      ...(left > 0 ? [el("p", { class: "small" }, `${plural(left, "more case")} left out on paper.`)] : []),
      ...(open ? [] : failedFirst().filter((row) => bodies.has(row.number)).map((row) => paperCase(row, bodies.get(row.number)))));
  };
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", () => at("printed").replaceChildren());

  at("explorer").hidden = false;
  filters.show(view);
  narrow();
  follow();
};

if (data) explore();

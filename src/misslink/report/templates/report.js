"use strict";
(() => {
  const cases = [...document.querySelectorAll("details.case")];
  const byCause = document.getElementById("by-cause");
  const byText = document.getElementById("by-text");
  const openAll = document.getElementById("open-all");
  const shown = document.getElementById("shown");
  if (!byCause) return;
  document.getElementById("filter").hidden = false;

  // What a case says, folded once and only when somebody searches.
  const texts = new Map();
  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };

  const apply = () => {
    const words = byText.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const item of cases) {
      const fits =
        (!byCause.value || item.dataset.cause === byCause.value) &&
        words.every((word) => textOf(item).includes(word));
      item.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = `${count} of ${cases.length}`;
  };

  // A link into a closed or filtered-out case shows what it points to.
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    const item = target.closest("details.case");
    if (item && item.hidden) {
      byCause.value = byText.value = "";
      apply();
    }
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    target.scrollIntoView({ block: item === target ? "start" : "center" });
  };

  byCause.addEventListener("change", apply);
  byText.addEventListener("input", apply);
  openAll.addEventListener("click", () => {
    const open = openAll.textContent === "Open all";
    for (const item of cases) if (!item.hidden) item.open = open;
    openAll.textContent = open ? "Close all" : "Open all";
  });
  for (const link of document.querySelectorAll("[data-filter]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      byCause.value = link.dataset.filter;
      byText.value = "";
      apply();
      document.getElementById("cases").scrollIntoView();
    });
  }
  // A second click on the same link changes no hash, so the click itself is heard as well.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]:not([data-filter])');
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  addEventListener("hashchange", reveal);
  apply();
  if (location.hash) reveal();
})();

// The cases of the current selection as a CSV file.

// A spreadsheet takes what begins with these signs for a formula.
const csvCell = (value) => {
  const text = String(value ?? "");
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
};

const saveCsv = (rows) => {
  const heads = ["number", "id", "question", "failure", "owner", "unsupported", "claims", "missed_rank", "keyword_rank", "why_missed"];
  const lines = rows.map((row) => [row.number, row.id, row.question, row.failure, ownerOf(row), row.unsupported,
    row.claimed, row.best_rank, row.keyword_rank, row.miss_types?.[0]]);
  const text = [heads, ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n");
  const href = URL.createObjectURL(new Blob([`\ufeff${text}\r\n`], { type: "text/csv" }));
  el("a", { href, download: "cases.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
};

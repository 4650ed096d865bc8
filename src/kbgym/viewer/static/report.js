// A table of the report as the server has it: the same numbers, captions and sentences, the paper's rows set apart.

import { csvAddress } from "./api.js";
import { h } from "./dom.js";

export function reportTable(run, name, table) {
  const width = table.columns.length + 1;
  const lines = table.lines.map((line) => {
    if (!line.cells.length)
      return h("tr", { class: "block" }, h("th", { colspan: width, scope: "colgroup" }, line.head));
    return h(
      "tr",
      { class: line.paper ? "paper" : null },
      h("th", { scope: "row" }, line.head.trim()),
      line.cells.map((cell) =>
        h("td", { class: "number", title: cell ? `${cell.id}: ${cell.formula}` : null }, cell?.text ?? ""),
      ),
    );
  });
  return h(
    "figure",
    { class: "sheet" },
    h(
      "div",
      { class: "tools" },
      h("span", { class: "title" }, table.title),
      h(
        "a",
        {
          class: "quiet button",
          href: csvAddress(run, name),
          download: `${table.name}.csv`,
          title: "save this table as CSV",
        },
        "CSV",
      ),
    ),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": table.title },
      h(
        "table",
        { class: "report" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            [table.head, ...table.columns].map((one, at) =>
              h("th", { scope: "col", class: at ? "number" : null }, one),
            ),
          ),
        ),
        h("tbody", {}, lines),
      ),
    ),
    h("figcaption", {}, h("strong", {}, table.sentence), " ", table.caption),
  );
}

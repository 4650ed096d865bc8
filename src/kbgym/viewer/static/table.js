// A table of data: sorted by a click on its head, walked with the arrow keys, opened with Enter, saved as CSV.

import { add, clear, download, h, plural } from "./dom.js";

const PAGE = 50;

/**
 * columns: {key, label, value(row), show(row), number, title, wide}; value is what is sorted and saved.
 * open(row) is called by Enter or a click; sort is "key" or "-key"; onSort hears of a change.
 */
export function dataTable({ name, label, columns, rows, open, cards, sort = "", onSort = () => {}, rowClass, empty }) {
  let order = sort;
  let shown = PAGE;
  let data = rows;
  const body = h("tbody");
  const said = h("span", { class: "rows", role: "status" });
  const heads = columns.map((column) =>
    h(
      "th",
      { scope: "col", class: column.number ? "number" : null, title: column.title },
      h("button", { type: "button", onclick: () => turn(column) }, column.label),
    ),
  );
  const more = h("button", {
    type: "button",
    class: "quiet more",
    onclick: () => {
      shown = Infinity;
      draw();
    },
  });
  const table = h("table", { class: cards ? "data cards" : "data", "aria-label": label }, h("thead", {}, h("tr", {}, heads)), body);
  body.addEventListener("keydown", walk);

  function turn(column) {
    const first = column.number ? `-${column.key}` : column.key;
    const second = column.number ? column.key : `-${column.key}`;
    order = order === first ? second : first;
    onSort(order);
    draw();
  }

  function sorted() {
    const column = columns.find((one) => one.key === order.replace(/^-/, ""));
    if (!column) return data;
    const sign = order.startsWith("-") ? -1 : 1;
    const value = column.value ?? ((row) => row[column.key]);
    return [...data].sort((a, b) => {
      const [left, right] = [value(a), value(b)];
      if (left === right) return 0;
      if (left === null || left === undefined) return 1;
      if (right === null || right === undefined) return -1;
      return sign * (typeof left === "number" ? left - right : String(left).localeCompare(String(right)));
    });
  }

  function draw() {
    const ordered = sorted();
    columns.forEach((column, at) => {
      const now = order === column.key ? "ascending" : order === `-${column.key}` ? "descending" : "none";
      heads[at].setAttribute("aria-sort", now);
    });
    clear(body, ordered.slice(0, shown).map(line));
    if (!ordered.length)
      add(body, [h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, empty ?? "Nothing here."))]);
    said.textContent = plural(ordered.length, "row");
    more.hidden = ordered.length <= shown;
    more.textContent = `Show all ${ordered.length.toLocaleString("en-US")} rows`;
  }

  function line(row, at) {
    const cells = columns.map((column) =>
      h(
        "td",
        {
          class: [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null,
          "data-label": column.label,
        },
        column.show ? column.show(row) : ((column.value ? column.value(row) : row[column.key]) ?? "–"),
      ),
    );
    const element = h(
      "tr",
      {
        tabindex: at === 0 ? 0 : -1,
        class: [open && "opens", rowClass?.(row)].filter(Boolean).join(" ") || null,
        onclick: (event) => {
          if (open && !event.target.closest("a, button")) open(row);
        },
      },
      cells,
    );
    element.row = row;
    return element;
  }

  function walk(event) {
    const row = event.target.closest("tr");
    if (!row || event.target !== row) return;
    const steps = {
      ArrowDown: row.nextElementSibling,
      ArrowUp: row.previousElementSibling,
      Home: body.firstElementChild,
      End: body.lastElementChild,
    };
    if (event.key in steps) {
      event.preventDefault();
      const next = steps[event.key];
      if (next) {
        row.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else if (event.key === "Enter" && open && row.row) open(row.row);
  }

  draw();
  const element = h(
    "div",
    { class: "sheet" },
    h(
      "div",
      { class: "tools" },
      said,
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          title: "save this table as CSV",
          onclick: () => download(`${name}.csv`, csv(columns, sorted()), "text/csv"),
        },
        "CSV",
      ),
    ),
    h("div", { class: "scroll" }, table),
    more,
  );
  element.update = (next) => {
    data = next;
    shown = PAGE;
    draw();
  };
  return element;
}

/** A table drawn elsewhere, with a button that saves its raw values. */
export function sheet(name, heads, rows, table) {
  const columns = heads.map((label, at) => ({ label, value: (row) => row[at] }));
  return h(
    "div",
    { class: "sheet" },
    h(
      "div",
      { class: "tools" },
      h("span", {}),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          title: "save this table as CSV",
          onclick: () => download(`${name}.csv`, csv(columns, rows), "text/csv"),
        },
        "CSV",
      ),
    ),
    h("div", { class: "scroll" }, table),
  );
}

export function csv(columns, rows) {
  const lines = rows.map((row) =>
    columns.map((column) => quoted((column.value ? column.value(row) : row[column.key]) ?? "")),
  );
  return (
    [columns.map((column) => quoted(column.csv ?? column.label)), ...lines].map((line) => line.join(",")).join("\n") +
    "\n"
  );
}

const quoted = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

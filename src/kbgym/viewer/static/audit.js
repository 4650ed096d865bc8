// The index audit as sortable tables: every authored document, and every link that is or looks wrong.

import { get } from "./api.js";
import { documentLink, part, tag } from "./chrome.js";
import { count, fixed, h, percent } from "./dom.js";
import { go, note } from "./router.js";
import { dataTable, sheet } from "./table.js";

export function audit(which, tab, params) {
  return part(
    get("audit", which),
    (found) => (tab === "audit" ? indexes(found, which, params) : suspects(found, which, params)),
    "Judging every index…",
  );
}

const openDocument = (which, id) => go("store", { ...which, doc: id });

const scores = [
  {
    key: "precision",
    label: "Right",
    number: true,
    title: "share of its links that belong under its key",
    show: (row) => percent(row.precision, 0),
  },
  {
    key: "recall",
    label: "Complete",
    number: true,
    title: "share of its key's members it leads to, by the world's facts",
    show: (row) => h("span", { title: row.use.complete }, percent(row.recall, 0)),
  },
  { key: "wrong", label: "Wrong", number: true, show: (row) => count(row.wrong) },
  { key: "missing", label: "Missing", number: true, show: (row) => count(row.missing) },
];

// What each gave or cost the questions of the run's exams, by estimate.
const used = (key, label, title, show) => ({
  key,
  label,
  title,
  number: true,
  show: (row) => show(row.use[key]),
  value: (row) => row.use[key],
});
const exams = [
  {
    key: "asked",
    label: "Exam questions",
    number: true,
    title: "how many exam questions opened it",
    show: (row) => h("span", { title: row.use.questions.join(", ") }, count(row.use.questions.length)),
    value: (row) => row.use.questions.length,
  },
  used("saved", "Actions saved", "actions the exams would have lost without it, by estimate from transcripts", count),
  used("f1", "F1 gained", "right answers the exams would have lost without it, by estimate", (value) => fixed(value, 2)),
];

function indexes(found, which, params) {
  const kinds = [...new Set(found.indexes.map((one) => one.shape))];
  const chosen = params.shape ?? "";
  const rows = (shape) => found.indexes.filter((one) => !shape || one.shape === shape);
  const table = dataTable({
    name: "index-audit",
    label: "Index audit",
    rows: rows(chosen),
    sort: params.sort ?? "-degree",
    onSort: (sort) => note({ sort }),
    open: (row) => openDocument(which, row.id),
    empty: "Agents wrote no document here.",
    columns: [
      { key: "id", label: "Document", show: (row) => documentLink(row.id, which) },
      { key: "text", label: "Says", wide: true },
      {
        key: "shape",
        label: "Is",
        title: "genuine: links, and names a key; stub: no links; materialised: states an answer",
        show: (row) => tag(row.shape === "genuine" ? "index" : row.shape === "stub" ? "stub" : "bad", row.shape),
      },
      ...(found.resolved ? [{ key: "group", label: "Kind of key", show: (row) => row.group || "–" }] : []),
      { key: "degree", label: "Links", number: true, show: (row) => count(row.degree) },
      ...(found.resolved ? scores : []),
      ...(found.exams ? exams : []),
      ...(found.history
        ? [
            {
              key: "opened",
              label: "Opened in training",
              number: true,
              title: "forward passes of training that read it",
              show: (row) => count(row.opened),
            },
            {
              key: "last_used",
              label: "Last",
              number: true,
              title: "the last iteration in which a forward pass opened it",
              show: (row) => count(row.use.last_used),
              value: (row) => row.use.last_used,
            },
          ]
        : []),
    ],
    rowClass: (row) =>
      row.wrong || row.use.harmful || row.shape === "stub" || row.shape === "materialised" ? "flagged" : null,
  });
  const filter = h(
    "label",
    { class: "field" },
    h("span", {}, "Show"),
    h(
      "select",
      {
        onchange: (event) => {
          note({ shape: event.target.value });
          table.update(rows(event.target.value));
        },
      },
      ["", ...kinds].map((kind) => h("option", { value: kind, selected: kind === chosen }, kind || "all")),
    ),
  );
  return [
    found.resolved
      ? sheet(
          "index-quality",
          ["index of a", "n", "links", "right", "complete"],
          found.kinds.map((row) => [row.group, row.n, row.degree, row.precision, row.recall]),
          h(
            "table",
            { class: "report" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                ["Index of a", "n", "Links", "Right", "Complete"].map((name, at) =>
                  h("th", { scope: "col", class: at ? "number" : null }, name),
                ),
              ),
            ),
            h(
              "tbody",
              {},
              found.kinds.map((row) =>
                h(
                  "tr",
                  { class: row.group === "all" ? "sum" : null },
                  h("th", { scope: "row" }, row.group),
                  h("td", { class: "number" }, count(row.n)),
                  h("td", { class: "number" }, fixed(row.degree, 1)),
                  h("td", { class: "number" }, percent(row.precision)),
                  h("td", { class: "number" }, percent(row.recall)),
                ),
              ),
            ),
          ),
        )
      : h(
          "p",
          { class: "hint" },
          "This world has no facts to score links against: whether an index is complete is not known, and a wrong link is only suspected.",
        ),
    found.advice.length
      ? h(
          "section",
          {},
          h("h3", {}, "Worth doing"),
          h(
            "ul",
            { class: "advice" },
            found.advice.map((one) => h("li", {}, one)),
          ),
        )
      : null,
    h("div", { class: "controls" }, filter),
    found.exams
      ? h(
          "p",
          { class: "hint" },
          `What each gave or cost ${count(found.exams.n)} exam questions (${found.exams.sets.join(", ")}) is estimated from their ` +
            "transcripts: without it, a question that saw only there what its answer rests on is taken to go as on the flat store.",
        )
      : null,
    table,
  ];
}

function suspects(found, which, params) {
  return [
    h(
      "p",
      { class: "says" },
      found.resolved
        ? `${count(found.suspects_total)} links are wrong by the world's own facts.`
        : `${count(found.suspects_total)} links look like the odd one out of their index.`,
    ),
    dataTable({
      name: "suspect-links",
      label: "Suspect links",
      rows: found.suspects,
      sort: params.sort ?? "",
      onSort: (sort) => note({ sort }),
      open: (row) => openDocument(which, row.index),
      empty: "No link is suspect.",
      columns: [
        { key: "index", label: "Index", show: (row) => documentLink(row.index, which) },
        { key: "index_text", label: "Says", wide: true },
        { key: "target", label: "Links to", show: (row) => documentLink(row.target, which) },
        { key: "target_text", label: "Which says", wide: true },
      ],
    }),
  ];
}

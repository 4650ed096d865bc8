// Two stores on the exam: set by set, with the report's intervals.

import { count, fixed, h, interval, sureClass } from "./dom.js";
import { sheet } from "./table.js";

export function comparedExams(found) {
  if (!found.groups.length) return h("p", { class: "hint" }, "No question was asked on both stores.");
  const pair = ([before, after], digits) => `${fixed(before, digits)} → ${fixed(after, digits)}`;
  const raw = found.groups.map((one) => [
    one.label,
    one.n,
    ...one.actions,
    one.rho.value,
    one.rho.low,
    one.rho.high,
    ...one.f1,
    one.difference.value,
    one.difference.low,
    one.difference.high,
    ...one.characters,
  ]);
  const heads = [
    "questions",
    "n",
    "actions left",
    "actions right",
    "rho",
    "rho low",
    "rho high",
    "F1 left",
    "F1 right",
    "F1 difference",
    "difference low",
    "difference high",
    "characters left",
    "characters right",
  ];
  return sheet(
    "compare-exams",
    heads,
    raw,
    h(
      "table",
      { class: "report" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Questions", "n", "Actions", "ρ [95%]", "F1", "F1 difference [95%]", "Characters read"].map((name, at) =>
            h("th", { scope: "col", class: at ? "number" : null }, name),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        found.groups.map((one) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, one.label),
            h("td", { class: "number" }, count(one.n)),
            h("td", { class: "number" }, pair(one.actions, 2)),
            h("td", { class: one.set ? sureClass(one.rho, 1) : "number" }, interval(one.rho)),
            h("td", { class: "number" }, pair(one.f1, 3)),
            h("td", { class: one.set ? sureClass(one.difference, 0) : "number" }, interval(one.difference)),
            h("td", { class: "number" }, pair(one.characters, 0)),
          ),
        ),
      ),
    ),
  );
}

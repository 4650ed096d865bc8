// Every step of training as a table: the question, how it went, what was edited then.

import { get } from "./api.js";
import { head, select, storePickers, view } from "./chrome.js";
import { clear, count, fixed, h } from "./dom.js";
import { choose, outcomeTag } from "./questiontabs.js";
import { go, note } from "./router.js";
import { dataTable } from "./table.js";

export async function lessons(main, params) {
  const { run, seed } = params;
  const about = await get("about", { run });
  const trained = about.arms.filter((one) => about.trained.includes(one.arm));
  const arm = about.trained.includes(params.arm) ? params.arm : trained[0]?.arm;
  const found = await get("lessons", { run, seed, arm });
  const rows = (epoch) => found.rows.filter((row) => !epoch || String(row.epoch) === epoch);
  const open = (row) => row.id && go("questions", { run, seed, arm, iteration: row.iteration });
  const table = dataTable({
    name: "training",
    label: "Training questions",
    rows: rows(params.epoch),
    sort: params.sort ?? "",
    onSort: (sort) => note({ sort }),
    open,
    empty: "Nothing was trained here.",
    columns: [
      { key: "iteration", label: "Iteration", number: true },
      {
        key: "text",
        label: "Question",
        wide: true,
        show: (row) =>
          row.id
            ? view("questions", { run, seed, arm, iteration: row.iteration }, { class: "plainlink" }, row.text)
            : row.text,
      },
      { key: "class", label: "Class" },
      { key: "epoch", label: "Epoch", number: true },
      { key: "outcome", label: "Outcome", show: (row) => outcomeTag(row.outcome, row.f1) },
      { key: "f1", label: "F1", number: true, show: (row) => fixed(row.f1, 2) },
      { key: "steps", label: "Steps", number: true },
      {
        key: "edits",
        label: "Edits",
        number: true,
        title: "what the backward pass changed",
        show: (row) => count(row.edits),
      },
      { key: "links", label: "Links then", number: true, show: (row) => count(row.links) },
    ],
    rowClass: (row) => (row.undone ? "undone" : null),
  });
  const epochs = [...new Set(found.rows.map((row) => String(row.epoch)))].filter((one) => one !== "0");
  clear(
    main,
    head(
      "Questions",
      "Every step of training: the question, how the reader answered it, and how many edits the curator then made.",
      storePickers(about, params, "questions", { arms: trained }),
    ),
    choose(params),
    epochs.length > 1
      ? h(
          "div",
          { class: "controls filters" },
          select("Epoch", [["", "all"], ...epochs.map((one) => [one, one])], params.epoch ?? "", (epoch) => {
            note({ epoch });
            table.update(rows(epoch));
          }),
        )
      : null,
    table,
  );
}

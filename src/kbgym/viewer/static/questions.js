// Questions: every exam question and how it went, on two stores side by side; training and single questions are beside.

import { get } from "./api.js";
import { head, storePickers, select, view } from "./chrome.js";
import { clear, fixed, h, later, plural, signed } from "./dom.js";
import { lessons } from "./lessons.js";
import { lesson, question } from "./question.js";
import { choose, outcomeTag } from "./questiontabs.js";
import { go, note } from "./router.js";
import { dataTable } from "./table.js";

export async function show(main, params) {
  if (params.iteration) return lesson(main, params);
  if (params.q) return question(main, params);
  return params.tab === "training" ? lessons(main, params) : exams(main, params);
}

async function exams(main, params) {
  const [about, found] = await Promise.all([
    get("about", { run: params.run }),
    get("questions", { run: params.run, seed: params.seed }),
  ]);
  const sentence =
    "Every exam question with its expected answer, and the answers given before and after training. Open one to see the steps.";
  if (!found.rows.length) {
    clear(main, head("Questions", sentence), choose(params), h("p", { class: "hint" }, "No exam was sat here yet."));
    return;
  }
  const arms = found.arms.map((one) => [one.arm, one.label]);
  const known = (arm, otherwise) => (arms.some(([one]) => one === arm) ? arm : otherwise);
  const state = {
    a: known(params.a, known("flat", arms[0][0])),
    b: known(params.b, known(about.trained[0], arms.at(-1)[0])),
    set: params.set ?? "",
    class: params.class ?? "",
    outcome: params.outcome ?? "",
    text: params.text ?? "",
    sort: params.sort ?? "-saved",
  };
  const labels = Object.fromEntries(found.sets.map((one) => [one.set, one.label]));
  const place = h("div");
  const classes = [...new Set(found.rows.map((row) => row.class))].sort((x, y) =>
    x.localeCompare(y, undefined, { numeric: true }),
  );
  const change = (changes) => {
    Object.assign(state, changes);
    note(changes);
    draw();
  };
  const by = (row, arm) => row.by[arm] ?? [null, null, "", null];
  const answered = (key, arm, label) => ({
    key,
    label: key === "before" ? "Before" : "After",
    csv: `answer, ${label}`,
    title: label,
    value: (row) => by(row, arm)[3] ?? "",
    show: (row) => reply(by(row, arm)),
  });

  function draw() {
    const rows = found.rows.filter(
      (row) =>
        (row.by[state.a] || row.by[state.b]) &&
        (!state.set || row.set === state.set) &&
        (!state.class || row.class === state.class) &&
        (!state.outcome || matches(by(row, state.b), state.outcome)) &&
        (!state.text || `${row.text} ${row.golds.join(" ")}`.toLowerCase().includes(state.text.toLowerCase())),
    );
    const [left, right] = [state.a, state.b].map((arm) => found.arms.find((one) => one.arm === arm).label);
    clear(
      place,
      h("p", { class: "says" }, summary(rows, state, left, right)),
      dataTable({
        name: "questions",
        label: "Exam questions",
        cards: true,
        rows,
        sort: state.sort,
        onSort: (sort) => {
          state.sort = sort;
          note({ sort });
        },
        open: (row) =>
          go("questions", {
            run: params.run,
            seed: params.seed,
            set: row.set,
            q: row.id,
            arms: `${state.a},${state.b}`,
          }),
        empty: "No question fits these filters.",
        columns: [
          {
            key: "text",
            label: "Question",
            wide: true,
            show: (row) =>
              view(
                "questions",
                { run: params.run, seed: params.seed, set: row.set, q: row.id, arms: `${state.a},${state.b}` },
                { class: "plainlink" },
                row.text,
              ),
          },
          { key: "golds", label: "Expected", value: (row) => row.golds.join(" or ") },
          answered("before", state.a, left),
          answered("after", state.b, right),
          { key: "set", label: "Group", value: (row) => labels[row.set] },
          { key: "class", label: "Kind" },
          {
            key: "saved",
            label: "Saved",
            title: "actions the second store saved",
            number: true,
            value: (row) => saved(row, state),
            show: (row) => signed(saved(row, state), 0),
          },
        ],
      }),
    );
  }
  clear(
    main,
    head("Questions", sentence, storePickers(about, params, "questions", { arms: [] })),
    choose(params),
    h(
      "div",
      { class: "controls filters" },
      select("Before", arms, state.a, (a) => change({ a })),
      select("After", arms, state.b, (b) => change({ b })),
      select("Group", [["", "all"], ...found.sets.map((one) => [one.set, one.label])], state.set, (set) =>
        change({ set }),
      ),
      select("Kind", [["", "all"], ...classes.map((one) => [one, one])], state.class, (value) =>
        change({ class: value }),
      ),
      select(
        "Outcome",
        [
          ["", "all"],
          ["right", "right"],
          ["wrong", "wrong"],
          ["out_of_budget", "out of budget"],
          ["agent_failed", "agent failed"],
        ],
        state.outcome,
        (outcome) => change({ outcome }),
      ),
      h(
        "label",
        { class: "field grow" },
        h("span", {}, "Words"),
        h("input", {
          type: "search",
          value: state.text,
          placeholder: "in the question or the expected answer",
          oninput: later((event) => change({ text: event.target.value }), 120),
        }),
      ),
    ),
    place,
  );
  draw();
}

/** An answer: right or wrong, its words, how many actions it took. */
const reply = ([f1, actions, outcome, answer]) =>
  outcome
    ? h(
        "span",
        { class: "reply" },
        outcomeTag(outcome, f1),
        outcome === "answered" ? h("span", { class: "quote" }, answer) : null,
        h("small", {}, plural(actions, "action")),
      )
    : "–";

const matches = ([f1, , outcome], wanted) =>
  wanted === "right"
    ? f1 === 1
    : wanted === "wrong"
      ? outcome === "answered" && f1 !== null && f1 < 1
      : outcome === wanted;
const saved = (row, { a, b }) => (row.by[a] && row.by[b] ? row.by[a][1] - row.by[b][1] : null);

function summary(rows, state, left, right) {
  const both = rows.filter((row) => row.by[state.a] && row.by[state.b]);
  if (!both.length) return "No question was asked on both stores.";
  const mean = (arm, at) => both.reduce((sum, row) => sum + (row.by[arm][at] ?? 0), 0) / both.length;
  return `${plural(both.length, "question")} on both: ${left} takes ${fixed(mean(state.a, 1), 2)} actions a question, ${right} ${fixed(mean(state.b, 1), 2)}; F1 ${fixed(mean(state.a, 0), 3)} and ${fixed(mean(state.b, 0), 3)}.`;
}

// Live: a run in progress, looked at again every moment. What is not yet committed is not shown.

import { forget, get } from "./api.js";
import { lineChart } from "./chart.js";
import { head, select, tag, view } from "./chrome.js";
import { clear, count, fixed, h, percent, plural, words } from "./dom.js";
import { go } from "./router.js";
import { sheet } from "./table.js";

const EVERY = 1_500;

export async function show(main, params) {
  const { run, seed } = params;
  const state = h("p", { class: "following", role: "status" });
  const place = h("div");
  const about = await get("about", { run }, { fresh: true });
  clear(
    main,
    head(
      "Live",
      "A run in progress, as it writes its trace: each line below was committed to disk before it is shown here. This page only looks.",
      about.seeds.length > 1
        ? select(
            "Seed",
            about.seeds.map((one) => [one, one]),
            seed ?? about.seeds[0],
            (value) => go("live", { run, seed: value }),
          )
        : null,
    ),
    state,
    place,
  );
  let timer = 0;
  let before = "";
  let still = 0;
  async function look() {
    if (!document.hidden) {
      try {
        const found = await get("live", { run, seed }, { fresh: true });
        const now = JSON.stringify([found.trainings.map((one) => one.bytes), found.exams]);
        still = now === before ? still + 1 : 0;
        if (now !== before) {
          if (before) forget();
          before = now;
          clear(
            place,
            found.trainings.map((one) => training(one, params)),
            exams(found.exams),
            found.trainings.length ? null : h("p", { class: "hint" }, "Nothing was trained here."),
          );
        }
        clear(state, h("span", { class: still < 4 && before ? "pulse on" : "pulse" }), said(found, still));
      } catch (error) {
        clear(state, error.message);
      }
    }
    timer = setTimeout(look, EVERY);
  }
  await look();
  return () => clearTimeout(timer);
}

function said(found, still) {
  const open = found.trainings.filter((one) => one.total && one.position < one.total);
  if (found.trainings.length && !open.length && found.trainings.every((one) => one.total))
    return "Training is finished; exams that are still being sat appear below.";
  return still < 4 ? "Following: new iterations appear by themselves." : "Nothing new at the moment; still following.";
}

function training(one, { run, seed }) {
  const bar = h("progress", { max: one.total || 1, "aria-label": `${one.label}: progress` });
  bar.value = one.position;
  return h(
    "section",
    { class: "run" },
    h("h2", {}, one.label),
    one.total
      ? h(
          "div",
          { class: "progress" },
          bar,
          h(
            "span",
            { class: "number" },
            `${count(one.position)} of ${count(one.total)} questions, ${percent(one.position / one.total, 0)}`,
          ),
        )
      : null,
    h(
      "dl",
      { class: "facts" },
      [
        ["Documents", count(one.documents)],
        ["Links", count(one.links)],
        ["Actions spent", count(one.actions)],
        ["F1, last 20", fixed(one.f1, 2)],
      ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, value)))),
    ),
    one.points.length > 1
      ? h(
          "div",
          { class: "pair" },
          lineChart({
            name: "live-links",
            title: "Links",
            yAxis: "links",
            xAxis: "iteration",
            from: 0,
            show: count,
            series: [{ name: "links", group: "trained", points: one.points.map((point) => [point[0], point[1]]) }],
          }),
          lineChart({
            name: "live-f1",
            title: "F1 of the last 20 questions",
            yAxis: "F1",
            xAxis: "iteration",
            show: (value) => fixed(value, 2),
            series: [{ name: "F1", group: "one", points: one.points.map((point) => [point[0], point[3]]) }],
          }),
        )
      : null,
    h("h3", {}, "Latest iterations"),
    sheet(
      "iterations",
      ["iteration", "question", "answer", "gold", "F1", "steps", "edits", "links"],
      one.recent.map((row) => [
        row.iteration,
        row.text,
        row.answer,
        row.golds.join(" / "),
        row.f1,
        row.steps,
        row.edits,
        row.links,
      ]),
      h(
        "table",
        { class: "report" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Iteration", "Question", "Answer", "Gold", "F1", "Steps", "Edits", "Links"].map((name, at) =>
              h("th", { scope: "col", class: at > 3 ? "number" : null }, name),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          one.recent.map((row) =>
            h(
              "tr",
              {},
              h(
                "th",
                { scope: "row", class: "number" },
                view("questions", { run, seed, arm: one.arm, iteration: row.iteration }, {}, row.iteration),
              ),
              h("td", { class: "wide" }, row.text),
              h("td", {}, row.answer ?? (row.outcome ? tag("bad", words(row.outcome)) : "–")),
              h("td", {}, row.golds.join(" / ")),
              h("td", { class: "number" }, fixed(row.f1, 2)),
              h("td", { class: "number" }, row.steps),
              h("td", { class: "number" }, row.edits),
              h("td", { class: "number" }, count(row.links)),
            ),
          ),
        ),
      ),
    ),
  );
}

function exams(list) {
  if (!list.length) return null;
  return h(
    "section",
    {},
    h("h2", {}, "Exams"),
    h(
      "p",
      { class: "says" },
      `${plural(list.length, "exam")}, ${plural(
        list.reduce((sum, one) => sum + one.rows, 0),
        "question",
      )} answered so far.`,
    ),
    h(
      "ul",
      { class: "chips" },
      list.map((one) => h("li", {}, one.name, " ", h("b", {}, count(one.rows)))),
    ),
  );
}

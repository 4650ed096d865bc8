// Learning curves: the store's growth, the training questions themselves, and exams of stores on the way.

import { get } from "./api.js";
import { lineChart } from "./chart.js";
import { part, section } from "./chrome.js";
import { count, fixed, h, percent } from "./dom.js";

export function learning(run, seed) {
  return section(
    "Learning curves",
    "How the store grew while it was trained, and how the training questions themselves went; a dashed line is where every question comes again.",
    part(get("learning", { run, seed }), (found) =>
      found.trainings.map((one) => [
        found.trainings.length > 1 ? h("h3", {}, one.label) : null,
        h(
          "div",
          { class: "pair" },
          one.exams ? examCurves(one) : null,
          one.growth.length > 1
            ? lineChart({
                name: `links-${one.arm}`,
                title: "Links in the store",
                yAxis: "links",
                xAxis: "training iteration",
                from: 0,
                marks: one.epochs,
                show: count,
                series: [{ name: "links", group: "trained", points: one.growth.map((point) => [point[0], point[2]]) }],
              })
            : null,
          one.growth.length > 1
            ? lineChart({
                name: `coverage-${one.arm}`,
                title: "Originals under an index",
                yAxis: "coverage",
                xAxis: "training iteration",
                from: 0,
                marks: one.epochs,
                show: (value) => percent(value, 0),
                series: [{ name: "coverage", group: "both", points: one.growth.map((point) => [point[0], point[3]]) }],
              })
            : null,
          one.forward.length > 1
            ? lineChart({
                name: `forward-f1-${one.arm}`,
                title: "F1 of the last 20 training questions",
                yAxis: "F1",
                xAxis: "training iteration",
                marks: one.epochs,
                show: (value, digits) => fixed(value, Math.max(2, digits)),
                series: [{ name: "F1", group: "one", points: one.forward.map((point) => [point[0], point[1]]) }],
              })
            : null,
          one.forward.length > 1
            ? lineChart({
                name: `forward-steps-${one.arm}`,
                title: "Steps of the last 20 training questions",
                yAxis: "steps",
                xAxis: "training iteration",
                marks: one.epochs,
                show: (value) => fixed(value, 1),
                series: [{ name: "steps", group: "neither", points: one.forward.map((point) => [point[0], point[2]]) }],
              })
            : null,
        ),
      ]),
    ),
  );
}

function examCurves(one) {
  const groups = Object.keys(one.exams[0].actions).filter((group) => group !== "pooled");
  const series = (field) =>
    groups.map((group) => ({
      name: { trained: "trained on", both: "both keys", one: "one key" }[group] ?? group,
      group,
      dots: true,
      points: one.exams.map((point) => [point.iteration, point[field][group]]),
    }));
  return [
    lineChart({
      name: `exam-actions-${one.arm}`,
      title: "Exam: actions a question",
      xAxis: "training iteration",
      yAxis: "actions",
      marks: one.epochs,
      series: series("actions"),
      show: (value) => fixed(value, 1),
    }),
    lineChart({
      name: `exam-f1-${one.arm}`,
      title: "Exam: F1",
      xAxis: "training iteration",
      yAxis: "F1",
      marks: one.epochs,
      series: series("f1"),
      show: (value) => fixed(value, 2),
    }),
  ];
}

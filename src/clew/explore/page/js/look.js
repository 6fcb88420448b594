/** The colours and shapes of nodes and links on the canvas, taken from the style sheet's tokens. */

import { colour } from "./theme.js";

/** @param {boolean} narrow whether layers go from top to bottom */
export function look(narrow) {
  const font = getComputedStyle(document.body).fontFamily;
  return [
    { selector: "node", style: {
      width: "data(width)", height: "data(height)", shape: "round-rectangle",
      "corner-radius": 7, "background-color": colour("card"), "border-color": colour("edge"),
      "border-width": 1.5, label: "data(text)", color: colour("ink"), "font-family": font,
      "font-size": 12, "text-valign": "center", "text-halign": "center", "text-wrap": "wrap",
      "text-max-width": "data(inner)", "line-height": 1.25, "transition-property": "opacity",
      "transition-duration": "120ms", "min-zoomed-font-size": 5,
    } },
    { selector: "node[kind = 'step']", style: {
      "background-color": colour("raised"), "border-color": colour("line"), "corner-radius": 15,
      color: colour("soft"), "font-size": 11.5,
    } },
    { selector: "node[kind = 'group']", style: {
      "border-style": "dashed", color: colour("accent"),
    } },
    { selector: "node[kind = 'source'], node[kind = 'sink'], node[kind = 'named']", style: {
      "border-color": colour("accent"), "font-weight": 600,
    } },
    { selector: "node[kind = 'sink']", style: { "background-color": colour("accent-soft") } },
    { selector: "node[kind = 'caption']", style: {
      "background-opacity": 0, "border-width": 0, color: colour("soft"), "font-size": 12,
      "text-max-width": 180, "text-wrap": "ellipsis", events: "no",
    } },
    { selector: "node[?asked]", style: {
      "background-color": colour("accent"), "border-color": colour("accent"),
      color: colour("accent-ink"), "font-weight": 600,
    } },
    { selector: "edge", style: {
      width: 1.4, "line-color": colour("edge"), "curve-style": "straight",
      "source-endpoint": narrow ? "0 50%" : "50% 0", "target-endpoint": narrow ? "0 -50%" : "-50% 0",
      "target-arrow-shape": "triangle", "target-arrow-color": colour("edge"), "arrow-scale": 0.8,
    } },
    { selector: ".faint", style: { opacity: 0.22 } },
    { selector: "node.lit", style: { "border-color": colour("accent"), "border-width": 2.2 } },
    { selector: "edge.lit", style: {
      width: 2, "line-color": colour("accent"), "target-arrow-color": colour("accent"),
    } },
    { selector: "node.chosen", style: {
      "outline-width": 3, "outline-color": colour("accent"), "outline-offset": 3,
    } },
    { selector: ".away", style: { display: "none" } },
    { selector: "core", style: { "active-bg-opacity": 0, "selection-box-opacity": 0 } },
  ];
}

/** The menu of forms in which an answer can be taken away. */

import { apiAddress } from "./api.js";
import { h } from "./dom.js";

const FORMS = [
  ["csv", "CSV", "the rows"],
  ["parquet", "Parquet", "the rows, with their types"],
  ["prov-json", "PROV-JSON", "W3C provenance"],
  ["prov-n", "PROV-N", "W3C provenance, to read"],
  ["prov-jsonld", "PROV-JSONLD", "W3C provenance, linked data"],
  ["graphml", "GraphML", "rows and edges, for graph tools"],
  ["svg", "SVG", "the drawing"],
  ["png", "PNG", "the drawing as an image"],
];

/** @param {() => Object<string, any>} question what the answer was asked with */
export function exportMenu(question) {
  const items = h("div", { class: "items" });
  const menu = h("details", {
    class: "menu",
    on: {
      toggle: () => items.replaceChildren(...FORMS.map(([format, name, what]) => h("a", {
        href: apiAddress("export", { ...question(), format }), download: "",
      }, name, h("small", {}, what)))),
    },
  }, h("summary", { class: "button" }, "Export"), items);
  return closing(menu);
}

/** Let a menu close on Escape, on a choice and on a click elsewhere. */
export function closing(menu) {
  const close = () => { menu.open = false; };
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    close();
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("click", (event) => {
    if (event.target.closest("a")) close();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) close();
  });
  return menu;
}

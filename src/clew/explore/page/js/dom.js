/**
 * Make elements. Whatever comes from data becomes a text node or an attribute's value, never markup.
 */

/** @typedef {Node|string|number|null|undefined|false|Array<any>} Child */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Object<string, any>} [settings] attributes; `on` holds listeners, `data` a dataset
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, settings = {}, ...children) {
  return fill(document.createElement(tag), settings, children);
}

/**
 * The same for SVG.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Object<string, any>} [settings]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, settings = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), settings, children);
}

/**
 * @template {HTMLElement|SVGElement} Made
 * @param {Made} element
 * @param {Object<string, any>} settings
 * @param {Child[]} children
 * @returns {Made}
 */
function fill(element, { on = {}, data = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value);
    }
  }
  Object.assign(element.dataset, data);
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

function isThere(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * An element that `index.html` has.
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`This page has no element \`${id}\`.`);
  return element;
}

/** Text in which `code` stands between backticks, as the messages of clew have it. */
export function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

/**
 * A choice between values; each option is a value, or a value with its text.
 * @param {(string|string[])[]} options
 * @param {string} value
 * @param {Object<string, any>} [settings]
 */
export function select(options, value, settings = {}) {
  const element = h("select", settings, options.map((each) => {
    const [key, text] = Array.isArray(each) ? each : [each, each];
    return h("option", { value: key }, text);
  }));
  element.value = value;
  return element;
}

// What each design document's global has besides the language: in JavaScript, evaluated once a global.
#pragma once

namespace scripts {

// Evaluates to a function of the global, what `require` finds, and a compiler of modules, that returns the two
// functions `require`: that of views, and that of filters and validation.
constexpr char prelude[] = R"js(
(function (global, views, design, compile) {
  "use strict";
  const define = (name, value) =>
    Object.defineProperty(global, name, { value, writable: true, configurable: true, enumerable: false });
  define("isArray", Array.isArray);
  define("toJSON", (value) => JSON.stringify(value));
  define("sum", (values) => {
    let total = 0;
    for (let index = 0; index < values.length; index++) total += values[index];
    return total;
  });

  const has = Object.prototype.hasOwnProperty;
  const loader = (root) => {
    const loaded = new Map(), loading = new Set();
    const load = (path, folder) => {
      if (typeof path !== "string") throw new TypeError("require takes the path of a module");
      const fail = (reason) => { throw new Error("require('" + path + "') failed: " + reason); };
      const names = /^\.\.?(\/|$)/.test(path) ? folder.slice() : [];
      for (const name of path.split("/")) {
        if (name === "" || name === ".") continue;
        if (name !== "..") names.push(name);
        else if (names.pop() === undefined) fail("the path leaves the design document");
      }
      const id = names.join("/");
      if (loaded.has(id)) return loaded.get(id).exports;
      if (loading.has(id)) fail("the module requires itself");
      let source = root;
      for (const name of names) {
        if (source === null || typeof source !== "object" || !has.call(source, name)) fail("no such module");
        source = source[name];
      }
      if (typeof source !== "string") fail("a module is a string");
      const module = { id, exports: {} };
      loading.add(id);
      try {
        const body = compile(source, id);
        body.call(module.exports, module, module.exports, (other) => load(other, names.slice(0, -1)));
      } finally {
        loading.delete(id);
      }
      loaded.set(id, module);
      return module.exports;
    };
    return (path) => load(path, []);
  };
  return [loader(views), loader(design)];
})
)js";

}  // namespace scripts

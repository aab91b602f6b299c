// Which view is shown: the part of the address behind "#". Each segment is escaped.
//
//   #/                                  databases
//   #/db/NAME/TAB…?option=value         a database

const routes = [];

/** Adds a view. `{name}` in a pattern is any segment. `show(root, values, context)` fills the element `root`. */
export function route(pattern, title, show) {
  routes.push({ parts: pattern.split("/").filter(Boolean), title, show });
}

/** The address of a view: `link(["db", name], { prefix })`. */
export function link(names, options = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) if (value !== undefined && value !== "") query.set(name, value);
  const text = query.toString();
  return `#/${names.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/** Shows another view. */
export function go(names, options) {
  const address = link(names, options);
  if (location.hash === address) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = address;
}

/** The view that the address names: its function and what stands in it; undefined if there is none. */
export function current() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  let names;
  try {
    names = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  for (const { parts, title, show } of routes) {
    if (parts.length !== names.length) continue;
    const values = {};
    const fits = parts.every((part, index) => {
      if (!part.startsWith("{")) return part === names[index];
      values[part.slice(1, -1)] = names[index];
      return true;
    });
    if (fits) return { title, show, names, values, options: Object.fromEntries(new URLSearchParams(query)) };
  }
  return undefined;
}

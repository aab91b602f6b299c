// JSON that keeps every number as it was written, and says where it is wrong.
//
// JSON.parse makes 9007199254740993 an even number, and browsers don't agree on how they name the place of a mistake.

/** A number that JavaScript can't hold: its digits. */
export class NumberText {
  constructor(text) {
    this.text = text;
  }
}

/** What is wrong, and where. `offset` counts from 0, `line` and `column` from 1. */
export class JSONError extends Error {
  constructor(message, text, offset) {
    super(message);
    const before = text.slice(0, offset).split("\n");
    this.offset = offset;
    this.line = before.length;
    this.column = before.at(-1).length + 1;
  }
}

const numberForm = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const blanks = /[ \t\r\n]*/y;
const plainText = /[^"\\\u0000-\u001f]*/y;
const deepest = 1000;

class Parser {
  constructor(text) {
    this.text = text;
    this.place = 0;
    this.depth = 0;
  }

  fail(message, place = this.place) {
    throw new JSONError(message, this.text, place);
  }

  /** The part that a pattern matches here, or undefined. */
  take(pattern) {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.place += found.length;
    return found;
  }

  peek() {
    this.take(blanks);
    return this.text[this.place];
  }

  document() {
    const value = this.value();
    if (this.peek() !== undefined) this.fail("there is more text behind the value");
    return value;
  }

  value() {
    const first = this.peek();
    if (first === "{") return this.nested(() => this.object());
    if (first === "[") return this.nested(() => this.array());
    if (first === '"') return this.string();
    for (const [word, value] of [["true", true], ["false", false], ["null", null]]) {
      if (this.text.startsWith(word, this.place)) {
        this.place += word.length;
        return value;
      }
    }
    const digits = this.take(numberForm);
    if (digits) return exactNumber(digits);
    return this.fail(first === undefined ? "a value is missing at the end" : "this is no value");
  }

  nested(read) {
    if (++this.depth > deepest) this.fail("this is nested too deeply");
    const value = read();
    this.depth -= 1;
    return value;
  }

  object() {
    const object = Object.create(null);
    this.place += 1;
    if (this.peek() === "}") return this.end(object);
    for (;;) {
      if (this.peek() !== '"') this.fail("a name in quotes is missing");
      const start = this.place;
      const name = this.string();
      if (name in object) this.fail("this name occurs twice", start);
      if (this.peek() !== ":") this.fail("a colon is missing");
      this.place += 1;
      object[name] = this.value();
      const next = this.peek();
      if (next === "}") return this.end(object);
      if (next !== ",") this.fail("a comma or } is missing");
      this.place += 1;
    }
  }

  array() {
    const array = [];
    this.place += 1;
    if (this.peek() === "]") return this.end(array);
    for (;;) {
      array.push(this.value());
      const next = this.peek();
      if (next === "]") return this.end(array);
      if (next !== ",") this.fail("a comma or ] is missing");
      this.place += 1;
    }
  }

  end(value) {
    this.place += 1;
    return value;
  }

  string() {
    const start = this.place;
    this.place += 1;
    for (;;) {
      this.take(plainText);
      const next = this.text[this.place];
      if (next === "\\") this.place += 2;
      else if (next === '"') break;
      else if (next === undefined) this.fail("this text has no end", start);
      else this.fail("a text can't have a control character");
    }
    this.place += 1;
    try {
      return JSON.parse(this.text.slice(start, this.place));
    } catch {
      return this.fail("this text has an escape that isn't one", start);
    }
  }
}

function exactNumber(digits) {
  const number = Number(digits);
  const isExact = /[.eE]/.test(digits) ? String(number) === digits : Number.isSafeInteger(number) && digits !== "-0";
  return isExact ? number : new NumberText(digits);
}

/** The value of a text. Throws `JSONError`. */
export const parse = (text) => new Parser(text).document();

/** A value as text; with an indent of two blanks if `isPretty`. Members that are undefined are left out. */
export function text(value, isPretty = true, indent = "") {
  if (value instanceof NumberText) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = indent + "  ";
  const items = Array.isArray(value)
    ? value.map((item) => text(item, isPretty, inner))
    : Object.entries(value).filter(([, item]) => item !== undefined)
      .map(([key, item]) => JSON.stringify(key) + (isPretty ? ": " : ":") + text(item, isPretty, inner));
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (items.length === 0) return open + close;
  return isPretty
    ? `${open}\n${inner}${items.join(`,\n${inner}`)}\n${indent}${close}`
    : open + items.join(",") + close;
}

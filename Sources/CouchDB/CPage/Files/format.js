// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");

export const count = (number) => whole.format(number);

/** "1 document", "2 documents". */
export const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** "12.3 MiB", which stays in one line. */
export function bytes(number) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)}\u00A0${units[unit]}`;
}

/** "1.23 ms", of seconds. */
export function seconds(number) {
  const [value, unit] = number >= 1 ? [number, "s"] : number >= 1e-3 ? [number * 1e3, "ms"] : [number * 1e6, "µs"];
  return `${Number(value.toPrecision(3))}\u00A0${unit}`;
}

/** The beginning of a text. */
export const shortened = (text, length) => (text.length > length ? `${text.slice(0, length)}…` : text);

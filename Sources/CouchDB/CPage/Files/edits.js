// What somebody has typed into a document and not saved. It isn't lost without a question.

import { confirm } from "./dialog.js";

let watched;

/** Watches a field from now on, in the place of the one before. What it has now counts as saved. */
export function watchEdits(area) {
  watched = { area, saved: area.value };
}

/** Whether the view has a text that isn't saved. */
export const isEdited = () => watched !== undefined && watched.area.isConnected && watched.area.value !== watched.saved;

/** Says that the text is saved, or isn't wanted any more. */
export function forgetEdits() {
  watched = undefined;
}

/** Asks if a text isn't saved. Returns whether the view may be left. */
export async function mayLeave() {
  if (!isEdited()) return true;
  if (!(await confirm("Leave without saving?", "What you have typed isn't saved.", "Leave"))) return false;
  forgetEdits();
  return true;
}

// The browser asks in words of its own before a reload, or before the window is closed.
window.addEventListener("beforeunload", (event) => {
  if (isEdited()) event.preventDefault();
});

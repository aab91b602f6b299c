// Who is logged in. The cookie itself is out of the page's reach (HttpOnly).

import * as api from "./api.js";
import { form } from "./dialog.js";
import { h } from "./dom.js";

export const session = {
  name: null,
  roles: [],
  /** Whether everybody is an administrator. */
  get isOpen() {
    return !this.name && this.isAdmin;
  },
  get isAdmin() {
    return this.roles.includes("_admin");
  },

  /** Asks the server. */
  async read() {
    const { userCtx } = await api.get("_session");
    this.name = userCtx.name;
    this.roles = userCtx.roles;
  },

  /** A request was refused: the cookie may be too old. */
  async expire() {
    const before = this.name;
    await this.read();
    if (before && !this.name) document.dispatchEvent(new Event("session-changed"));
  },
};

/** Asks for a name and a password. */
export async function logIn() {
  const user = h("input", { name: "username", autocomplete: "username", required: true, autofocus: true, spellcheck: "false" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const done = await form("Log in", "Log in", [{ label: "Name", control: user }, { label: "Password", control: password }],
    async () => {
      await api.ask("POST", "_session", { body: { name: user.value, password: password.value } });
      await session.read();
    });
  if (done) document.dispatchEvent(new Event("session-changed"));
}

/** Ends the session. */
export async function logOut() {
  await api.ask("DELETE", "_session");
  await session.read();
  document.dispatchEvent(new Event("session-changed"));
}

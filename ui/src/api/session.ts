// How this tab signs in to the API. The token is in sessionStorage only: other tabs do not have it, and the browser
// forgets it when the tab is closed.
import {signal} from '@preact/signals';

const key = 'token';
let token = sessionStorage.getItem(key) ?? '';

export const currentToken = (): string => token; // '': none

export function setToken(value: string): void {
  token = value;
  if (value === '') sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, value);
}

// Why the API answers no requests of this tab until the user signs in; null: it answers. While it is not null, no
// requests are sent.
export const refusal = signal<string | null>(null);

// `sent`: the token of the refused request. An answer about an earlier token says nothing about the present one.
export function refuse(sent: string, reason: string): void {
  if (sent !== token) return;
  setToken(''); // a certificate or a proxy may sign in this user after a reload, but not beside a wrong token
  refusal.value = reason;
}

// Sends requests to the reducer. Every failure becomes an ApiError with a message that can be shown unchanged.
import {currentToken, refusal, refuse} from './session.ts';
import type {WhoamiAnswer} from './types.ts';

export class ApiError extends Error {
  // HTTP status; 0: no answer.
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const notReached = 'The reducer does not answer. Check that it runs, and that your browser can reach it.';

async function errorMessage(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    if (typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'string') {
      return body.error;
    }
  } catch {
    // Not JSON: a server between the page and the reducer answered. Only its status line is of use.
  }
  return `The server answered ${response.status} ${response.statusText}`.trim();
}

// All requests go through this function, because it adds the token. Returns the answer's JSON. `noAnswer`: the message
// if the connection fails.
async function send<T>(path: string, init: RequestInit, token: string, noAnswer = notReached): Promise<T> {
  const headers = new Headers(init.headers);
  if (token !== '') headers.set('Authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(`api/v1/${path}`, {...init, headers, cache: 'no-store'});
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, noAnswer);
  }
  if (!response.ok) throw new ApiError(response.status, await errorMessage(response));
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(response.status, `The answer to ${path} is not complete JSON.`);
  }
}

// Sends a request with the token of this tab. Sends nothing while the API refuses this tab.
async function sendSignedIn<T>(path: string, init: RequestInit, noAnswer?: string): Promise<T> {
  const reason = refusal.peek();
  if (reason !== null) throw new ApiError(401, reason);
  const token = currentToken();
  try {
    return await send<T>(path, init, token, noAnswer);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) refuse(token, error.message);
    throw error;
  }
}

export function getJson<T>(path: string, parameters: Record<string, string>, signal: AbortSignal): Promise<T> {
  const search = new URLSearchParams(parameters).toString();
  return sendSignedIn<T>(`${path}${search ? `?${search}` : ''}`, {signal});
}

// The browser reads the file while it sends it, so the size of the file does not matter here.
export function putFile<T>(path: string, file: Blob): Promise<T> {
  return sendSignedIn<T>(
    path,
    {method: 'PUT', body: file, headers: {'Content-Type': 'application/octet-stream'}},
    'The connection ended before the reducer answered. Check that the reducer runs, then send the file again.',
  );
}

export function getWhoami(): Promise<WhoamiAnswer> {
  return sendSignedIn<WhoamiAnswer>('whoami', {});
}

// Tries a token that this tab does not use yet.
export function tryToken(token: string): Promise<WhoamiAnswer> {
  return send<WhoamiAnswer>('whoami', {}, token);
}

// Sends requests to the reducer. Every failure becomes an ApiError with a message that can be shown unchanged.

export class ApiError extends Error {
  // HTTP status; 0: no answer.
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

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

async function readJson<T>(path: string, response: Response, signal?: AbortSignal): Promise<T> {
  if (!response.ok) throw new ApiError(response.status, await errorMessage(response));
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(response.status, `The answer to ${path} is not complete JSON.`);
  }
}

export async function getJson<T>(path: string, parameters: Record<string, string>, signal: AbortSignal): Promise<T> {
  const search = new URLSearchParams(parameters).toString();
  let response: Response;
  try {
    response = await fetch(`api/v1/${path}${search ? `?${search}` : ''}`, {signal, cache: 'no-store'});
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, 'The reducer does not answer. Check that it runs, and that your browser can reach it.');
  }
  return readJson<T>(path, response, signal);
}

// The browser reads the file while it sends it, so the size of the file does not matter here.
export async function putFile<T>(path: string, file: Blob): Promise<T> {
  const headers = {'Content-Type': 'application/octet-stream'};
  let response: Response;
  try {
    response = await fetch(`api/v1/${path}`, {method: 'PUT', body: file, headers, cache: 'no-store'});
  } catch {
    throw new ApiError(
      0,
      'The connection ended before the reducer answered. Check that the reducer runs, then send the file again.',
    );
  }
  return readJson<T>(path, response);
}

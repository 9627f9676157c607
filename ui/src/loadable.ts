// An answer of the server as a signal. It keeps the last good answer while newer requests fail.
import type {Signal} from '@preact/signals';
import {ApiError, getJson} from './api/client.ts';

export interface Loadable<T> {
  value: T | null;
  error: ApiError | null;
}

export const nothing = {value: null, error: null};

function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, error instanceof Error ? error.message : String(error));
}

// `keepOld`: if the request fails, the old value stays. The old value must answer the same question.
export async function load<Answer, Value>(
  target: Signal<Loadable<Value>>,
  path: string,
  parameters: Record<string, string>,
  abort: AbortSignal,
  convert: (answer: Answer) => Value,
  keepOld = true,
): Promise<void> {
  try {
    const value = convert(await getJson<Answer>(path, parameters, abort));
    if (!abort.aborted) target.value = {value, error: null};
  } catch (error) {
    const failure = asApiError(error);
    // The sign-in view covers the page then. What is below it must not be an error after the user has signed in.
    if (abort.aborted || failure.status === 401) return;
    target.value = {value: keepOld ? target.value.value : null, error: failure};
  }
}

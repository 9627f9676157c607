// What the server is asked for, as a signal that keeps its last good answer while a newer one fails.
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

// `keepOld`: an answer of the same question may stand in for one that failed.
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
    if (!abort.aborted) target.value = {value: keepOld ? target.value.value : null, error: asApiError(error)};
  }
}

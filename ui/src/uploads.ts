// Executables and debug files that the user sends. They are sent one after another, because the reducer reads one at a
// time. Sending continues while the card that shows them is closed.
import {signal} from '@preact/signals';
import {ApiError, putFile} from './api/client.ts';
import type {UploadAnswer} from './api/types.ts';
import {symbolsChanged} from './state.ts';

export interface Upload {
  id: number;
  file: File;
  state: 'waiting' | 'sending' | 'done' | 'failed';
  answer: UploadAnswer | null; // set when `state` is done
  error: ApiError | null; // set when `state` is failed
}

export const uploadsMax = 500;
export const uploads = signal<Upload[]>([]);
export const leftOut = signal(0); // number of files of the last choice that did not fit in the list
export const isUnderWay = ({state}: Upload): boolean => state === 'waiting' || state === 'sending';

let lastId = 0;
let working = false;

export function addFiles(files: readonly File[]): void {
  const room = uploadsMax - uploads.value.length;
  const added = files.slice(0, room).map((file): Upload => {
    lastId += 1;
    return {id: lastId, file, state: 'waiting', answer: null, error: null};
  });
  leftOut.value = files.length - added.length;
  uploads.value = [...uploads.value, ...added];
  void work();
}

export function sendAgain(id: number): void {
  patch(id, {state: 'waiting', error: null});
  void work();
}

// Sending stops while the API refuses this tab. Call it after the user has signed in.
export function resumeUploads(): void {
  void work();
}

export function clearFinished(): void {
  uploads.value = uploads.value.filter(isUnderWay);
  leftOut.value = 0;
}

function patch(id: number, change: Partial<Upload>): void {
  uploads.value = uploads.value.map((upload) => (upload.id === id ? {...upload, ...change} : upload));
}

async function send(file: File): Promise<UploadAnswer> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new ApiError(
      0,
      'The file cannot be read: it is a folder, was removed, or you have no permission. ' +
        'For folders, use “tributary symbols push”.',
    );
  }
  return putFile<UploadAnswer>('symbols', file);
}

async function work(): Promise<void> {
  if (working) return;
  working = true;
  let stored = false;
  for (;;) {
    const next = uploads.value.find(({state}) => state === 'waiting');
    if (!next) break;
    patch(next.id, {state: 'sending'});
    try {
      const answer = await send(next.file);
      patch(next.id, {state: 'done', answer});
      stored ||= answer.stored;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        patch(next.id, {state: 'waiting'});
        break;
      }
      patch(next.id, {state: 'failed', error: error instanceof ApiError ? error : new ApiError(0, String(error))});
    }
  }
  working = false;
  if (stored) void symbolsChanged();
}

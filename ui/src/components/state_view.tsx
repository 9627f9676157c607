// Stands in place of a graph that loads, failed, or has no samples. Says what to do.
import type {ApiError} from '../api/client.ts';
import {wantsToSignIn} from '../sign_in.ts';
import {refresh, setView, status, view} from '../state.ts';
import {Icon} from './icons.tsx';

function Empty() {
  const nodes = status.value.value?.nodes;
  const filtered = view.value.query.trim() !== '';
  const advice =
    nodes && nodes.length === 0
      ? 'No collector has reported yet. Start kernel-collector on a machine, with the address of this reducer.'
      : filtered
        ? 'No sample in this range passes the filters.'
        : view.value.type !== ''
          ? 'No sample of this type was recorded in this range.'
          : 'No samples were recorded in this range. Try a longer range.';
  return (
    <div class="state" data-testid="empty">
      <h2>No samples here</h2>
      <p>{advice}</p>
      <p class="state-actions">
        {filtered && (
          <button type="button" class="button" onClick={() => setView({query: '', zoom: ''})}>
            Clear the filters
          </button>
        )}
        <button type="button" class="button" onClick={() => setView({from: '-1h', to: 'now', live: true})}>
          Show the last hour
        </button>
      </p>
    </div>
  );
}

function titleOf({status: code}: ApiError): string {
  if (code === 0) return 'No answer from the reducer';
  return code === 403 ? 'You may not see this' : 'The reducer could not answer the request';
}

export function StateView({error, empty}: {error: ApiError | null; empty: boolean}) {
  if (error) {
    return (
      <div class="state" role="alert" data-testid="error">
        <Icon name="warning" />
        <h2>{titleOf(error)}</h2>
        <p>{error.message}</p>
        <p class="state-actions">
          <button type="button" class="button" onClick={() => void refresh()}>
            Try again
          </button>
          {error.status === 403 && (
            <button type="button" class="button" onClick={() => (wantsToSignIn.value = true)}>
              Use another token
            </button>
          )}
        </p>
      </div>
    );
  }
  if (empty) return <Empty />;
  return (
    <div class="state loading" role="status" data-testid="loading" aria-label="Loading">
      {[100, 82, 64, 40, 22].map((width) => (
        <span key={width} class="skeleton" style={{width: `${width}%`}} />
      ))}
    </div>
  );
}

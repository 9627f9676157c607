import {useState} from 'preact/hooks';
import {
  absoluteRange,
  canFollow,
  describeRange,
  fromLocalInput,
  presets,
  resolveTime,
  toLocalInput,
  zoomedOut,
} from '../model/time_range.ts';
import {loading, refresh, setView, view} from '../state.ts';
import {Icon} from './icons.tsx';
import {Popover} from './popover.tsx';

function AbsoluteForm({close}: {close: () => void}) {
  const now = Date.now();
  const [from, setFrom] = useState(toLocalInput(resolveTime(view.value.from, now) ?? now));
  const [to, setTo] = useState(toLocalInput(resolveTime(view.value.to, now) ?? now));
  const [error, setError] = useState('');
  const apply = (event: Event) => {
    event.preventDefault();
    const fromMs = fromLocalInput(from);
    const toMs = fromLocalInput(to);
    if (fromMs === null || toMs === null) return setError('Enter both a date and a time.');
    if (fromMs >= toMs) return setError('“From” must come before “to”.');
    setView({...absoluteRange(fromMs, toMs), live: false});
    close();
  };
  return (
    <form class="absolute" onSubmit={apply}>
      <label>
        From
        <input
          type="datetime-local"
          step="1"
          value={from}
          data-testid="range-from"
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </label>
      <label>
        To
        <input
          type="datetime-local"
          step="1"
          value={to}
          data-testid="range-to"
          onInput={(event) => setTo(event.currentTarget.value)}
        />
      </label>
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <button type="submit" class="button primary" data-testid="range-apply">
        Show this range
      </button>
    </form>
  );
}

export function TimePicker() {
  const {from, to, live} = view.value;
  const range = {from, to};
  const followable = canFollow(range);
  const label = (
    <>
      <Icon name="clock" />
      <span class="grow" data-testid="range-label">
        {describeRange(range)}
      </span>
      <Icon name="chevron" />
    </>
  );
  return (
    <div class="group time-picker">
      <Popover name="Time range" label={label} align="right">
        {(close) => (
          <div class="range-panel">
            <ul class="choices">
              {presets.map((preset) => (
                <li key={preset.from}>
                  <button
                    type="button"
                    aria-pressed={from === preset.from && to === 'now'}
                    onClick={() => {
                      setView({from: preset.from, to: 'now', live: true});
                      close();
                    }}
                  >
                    {preset.label}
                  </button>
                </li>
              ))}
            </ul>
            <AbsoluteForm close={close} />
          </div>
        )}
      </Popover>
      <button
        type="button"
        class="button icon-only"
        aria-label="Double the range"
        title="Double the range"
        onClick={() => setView({...zoomedOut(range, Date.now()), live: false})}
      >
        <Icon name="zoomOut" />
      </button>
      <button
        type="button"
        class={`button live${live ? ' on' : ''}`}
        aria-pressed={live}
        data-testid="live"
        title={
          live
            ? 'Refreshes every 5 seconds'
            : followable
              ? 'Refresh every 5 seconds'
              : 'Show the last 15 minutes, and refresh every 5 seconds'
        }
        onClick={() => setView(followable ? {live: !live} : {from: '-15m', to: 'now', live: true})}
      >
        <span class="dot" />
        Live
      </button>
      <button
        type="button"
        class="button icon-only"
        aria-label="Refresh"
        title="Refresh"
        data-testid="refresh"
        aria-busy={loading.value}
        onClick={() => void refresh()}
      >
        <Icon name="refresh" />
      </button>
    </div>
  );
}

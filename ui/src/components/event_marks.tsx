// Marks below the timeline: crashes, OOM kills and restarts. A mark opens a list of its events. All marks are one stop
// for the Tab key, and the arrow keys move between them.
import {useState} from 'preact/hooks';
import type {EventMark} from '../api/types.ts';
import {
  groupNumber,
  markCountsText,
  markKinds,
  markPlace,
  markText,
  markWords,
  type MarkGroup,
} from '../model/event_marks.ts';
import {formatCount} from '../model/format.ts';
import {momentOf, programMatcherOf, programName} from '../model/process_events.ts';
import {selectProgram, setView} from '../state.ts';
import {EventGlyph} from './event_glyph.tsx';
import {Popover} from './popover.tsx';

const titledMax = 8; // events in one tooltip
const listedMax = 20; // events in one popover

function titleOf(group: MarkGroup, now: number): string {
  const lines = group.marks.slice(0, titledMax).map((mark) => markText(mark, now));
  if (group.marks.length > titledMax) lines.push(`and ${group.marks.length - titledMax} more`);
  return lines.join('\n');
}

function MarkRow({mark, now, close}: {mark: EventMark; now: number; close: () => void}) {
  const name = programName(mark);
  const matcher = programMatcherOf(mark);
  const choose = () => {
    close();
    if (matcher) selectProgram(matcher);
  };
  return (
    <li data-testid="event-mark-row">
      <EventGlyph kind={mark.kind} />
      <p>
        <span class="event-name" title={name}>
          {name}
        </span>
        <span class="event-words">{markWords(mark)}</span>
        <span class="event-place">{[momentOf(mark.at, now), markPlace(mark)].filter(Boolean).join(' · ')}</span>
      </p>
      {matcher && (
        <button
          type="button"
          class="button small-button"
          title={`Show only ${name}`}
          aria-label={`Select the program ${name}`}
          data-testid="event-mark-select"
          onClick={choose}
        >
          Select
        </button>
      )}
    </li>
  );
}

function MarkList({group, now, close}: {group: MarkGroup; now: number; close: () => void}) {
  const hidden = group.marks.length - listedMax;
  return (
    <div class="event-panel">
      <h2>{markCountsText(group.counts)}</h2>
      <ul>
        {group.marks.slice(0, listedMax).map((mark, i) => (
          <MarkRow key={i} mark={mark} now={now} close={close} />
        ))}
      </ul>
      <p class="event-panel-foot">
        {hidden > 0 && <span class="hint">{`${formatCount(hidden)} more are not listed.`}</span>}
        <button
          type="button"
          class="button small-button"
          data-testid="event-mark-processes"
          onClick={() => {
            close();
            setView({processes: 'open'});
          }}
        >
          Open Processes
        </button>
      </p>
    </div>
  );
}

// The same events keep their key while the range moves, so that an open popover stays open.
const keyOf = ({at, kind, node_id, pid, name}: EventMark) => JSON.stringify([at, kind, node_id, pid, name]);

const steps: Record<string, number> = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};

interface EventMarksProps {
  groups: readonly MarkGroup[];
  offset: number; // of the plot, in pixels
  width: number; // from the left edge of the chart to the right edge of the plot
}

export function EventMarks({groups, offset, width}: EventMarksProps) {
  const [active, setActive] = useState(0);
  const now = Date.now();
  const stop = Math.min(active, groups.length - 1);
  const onKeyDown = (event: KeyboardEvent & {currentTarget: HTMLElement}) => {
    const step = steps[event.key];
    const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>('.event-mark-button')];
    const from = buttons.indexOf(event.target as HTMLElement);
    if (step === undefined || from < 0) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(buttons.length - 1, from + step));
    setActive(to);
    buttons[to]!.focus();
  };
  if (groups.length === 0) return null;
  return (
    <div class="event-marks" role="group" aria-label="Crashes, OOM kills and restarts" onKeyDown={onKeyDown}>
      {groups.map((group, i) => {
        const left = offset + group.left;
        const first = group.marks[0]!;
        return (
          <div
            key={keyOf(first)}
            class="event-mark"
            style={{left: `${left}px`, '--left': `${left}px`, '--whole': `${width}px`}}
          >
            <Popover
              name={`${markCountsText(group.counts)}, ${momentOf(first.at, now)}`}
              kind="event-mark-button"
              testId="event-mark"
              title={titleOf(group, now)}
              tabIndex={i === stop ? 0 : -1}
              label={
                <>
                  {markKinds
                    .filter((kind) => group.counts[kind] > 0)
                    .map((kind) => (
                      <EventGlyph key={kind} kind={kind} />
                    ))}
                  <span class="event-number">{groupNumber(group)}</span>
                </>
              }
            >
              {(close) => <MarkList group={group} now={now} close={close} />}
            </Popover>
          </div>
        );
      })}
    </div>
  );
}

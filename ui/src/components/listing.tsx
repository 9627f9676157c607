// The source around the lines that have samples, with the shares of each line next to it.
import {useEffect, useRef, useState} from 'preact/hooks';
import type {LinesAnswer} from '../api/types.ts';
import {formatCount, formatPercent, formatSamples, printable, printableLine} from '../model/format.ts';
import {
  gapKey,
  heatOf,
  listingsOf,
  placeOf,
  splitPath,
  type FileListing,
  type ListingPart,
  type TextlessFile,
} from '../model/lines.ts';
import {formatValue, measureOf} from '../model/measure.ts';
import {setView, view} from '../state.ts';

const lineBytesMax = 512; // the reducer cuts longer lines
const isCut = (text: string): boolean => text.length * 3 >= lineBytesMax && new TextEncoder().encode(text).length >= lineBytesMax;

interface LineProps {
  part: ListingPart & {kind: 'line'};
  whole: number;
  unit: string;
  chosen: boolean;
}

function SourceLine({part: {number, text, samples}, whole, unit, chosen}: LineProps) {
  const share = (ns: number) => (ns > 0 ? formatPercent(ns, whole, 1) : '');
  const place = samples ? placeOf(samples) : '';
  const title =
    samples &&
    `${formatValue(samples.self_ns, unit)} in the line itself (${formatSamples(samples.self_count)}), ` +
      `${formatValue(samples.total_ns, unit)} with the functions that it calls (${formatSamples(samples.total_count)})`;
  return (
    <tr
      class={samples ? `heat-${heatOf(samples.total_ns, whole)}${chosen ? ' chosen' : ''}` : undefined}
      data-place={place || undefined}
      data-testid={samples ? 'source-hot' : 'source-line'}
    >
      <th scope="row" class="gutter" title={title ?? undefined}>
        <span class="gutter-self">{samples && share(samples.self_ns)}</span>
        <span class="gutter-total">{samples && share(samples.total_ns)}</span>
        {samples ? (
          <button
            type="button"
            aria-label={`Addresses of line ${number}`}
            aria-pressed={chosen}
            onClick={() => setView({line: chosen ? '' : place})}
          >
            {number}
          </button>
        ) : (
          <span class="gutter-line">{number}</span>
        )}
      </th>
      <td>
        {printableLine(text)}
        {isCut(text) && (
          <span class="muted" title={`Cut after ${lineBytesMax} bytes`}>
            …
          </span>
        )}
      </td>
    </tr>
  );
}

interface FileProps {
  listing: FileListing;
  whole: number;
  unit: string;
  openGap: (key: string) => void;
}

function File({listing: {file, totalNs, parts, undrawn}, whole, unit, openGap}: FileProps) {
  const {directory, name} = splitPath(file);
  const {line: chosen} = view.value;
  return (
    <table class="listing" data-testid="listing-file">
      <thead>
        <tr>
          <th scope="col" class="gutter">
            <span class="gutter-self">Self</span>
            <span class="gutter-total">Total</span>
            <span class="gutter-line">Line</span>
          </th>
          <th scope="col" class="listing-name" title={printable(file)}>
            <span class="listing-path">
              <b>{printable(name)}</b>
              <span>{formatPercent(totalNs, whole, 1)}</span>
              <span class="line-directory">{printable(directory)}</span>
            </span>
          </th>
        </tr>
      </thead>
      <tbody>
        {parts.map((part) =>
          part.kind === 'line' ? (
            <SourceLine
              key={part.number}
              part={part}
              whole={whole}
              unit={unit}
              chosen={part.samples !== null && placeOf(part.samples) === chosen}
            />
          ) : (
            <tr key={`gap ${part.first}`} class="gap">
              <td colSpan={2}>
                <button type="button" data-testid="gap" onClick={() => openGap(gapKey(file, part.first))}>
                  {`⋯ ${formatCount(part.last - part.first + 1)} lines`}
                </button>
              </td>
            </tr>
          ),
        )}
        {undrawn > 0 && (
          <tr class="gap">
            <td colSpan={2} data-testid="undrawn">
              {`${formatCount(undrawn)} more lines with samples are hidden in “⋯”: only the hottest lines are shown`}
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

const textlessMax = 10;

export function Textless({files, whole}: {files: readonly TextlessFile[]; whole: number}) {
  if (files.length === 0) return null;
  return (
    <div class="textless" data-testid="textless">
      <p class="hint">
        The reducer does not have the source text of these lines. Start the reducer with --source-dir DIR, the directory
        of the source files. Repeat the option for more directories.
      </p>
      <ul>
        {files.slice(0, textlessMax).map(({file, totalNs, lines}) => (
          <li key={file}>
            <code>{printable(file)}</code>
            <span class="muted">
              {` ${formatCount(lines)} ${lines === 1 ? 'line' : 'lines'}, ${formatPercent(totalNs, whole, 1)}`}
            </span>
          </li>
        ))}
      </ul>
      {files.length > textlessMax && <p class="hint">{`and ${formatCount(files.length - textlessMax)} more files`}</p>}
    </div>
  );
}

// `revealed`: the place to scroll into view. This happens each time it changes.
export function Listing({answer, whole, revealed}: {answer: LinesAnswer; whole: number; revealed: string}) {
  const scroller = useRef<HTMLDivElement>(null);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const {files, textless} = listingsOf(answer, opened);
  useEffect(() => {
    const box = scroller.current!;
    const row = box.querySelector<HTMLElement>(`[data-place="${CSS.escape(revealed)}"]`);
    if (!row) return;
    const top = row.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    const head = 40;
    const inSight = top >= box.scrollTop + head && top + row.offsetHeight <= box.scrollTop + box.clientHeight;
    if (!inSight) box.scrollTop = top - box.clientHeight / 3;
  }, [revealed]);
  return (
    <div class="listing-scroll" ref={scroller} tabIndex={0} role="region" aria-label="Source" data-testid="listing">
      {files.map((listing) => (
        <File
          key={listing.file}
          listing={listing}
          whole={whole}
          unit={measureOf(answer).unit}
          openGap={(key) => setOpened(new Set([...opened, key]))}
        />
      ))}
      <Textless files={textless} whole={whole} />
    </div>
  );
}

// The lines of a function, hottest first: self, total and text. A click on a line opens its addresses.
import {useEffect, useRef} from 'preact/hooks';
import type {FunctionLine, LineAddress} from '../api/types.ts';
import {formatCount, formatPercent, formatSamples, printable, printableLine} from '../model/format.ts';
import {placeOf, sortLines, splitPath, type LinesSort, type LineTotals} from '../model/lines.ts';
import {formatValue} from '../model/measure.ts';
import {shortBuildId} from '../model/symbol_words.ts';
import {setView, view} from '../state.ts';
import {Amount, SortHead} from './cells.tsx';

const shownMax = 500;
const addressesMax = 100;

interface AddressesProps {
  addresses: readonly LineAddress[];
  whole: number;
  unit: string;
}

function Addresses({addresses, whole, unit}: AddressesProps) {
  if (addresses.length === 0) return <p class="hint">The frames of this function have no addresses.</p>;
  const sorted = [...addresses].sort((a, b) => b.ns - a.ns);
  return (
    <>
      <table class="addresses" data-testid="addresses">
        <thead>
          <tr>
            <th scope="col">Address</th>
            <th scope="col">Build-id</th>
            <th scope="col" class="number">
              Samples
            </th>
            <th scope="col" class="number">
              Total
            </th>
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, addressesMax).map(({build_id, address, ns, count}) => (
            <tr key={`${build_id} ${address}`} data-testid="address">
              <td>
                <code>{printable(address)}</code>
              </td>
              <td>
                <code title={printable(build_id)}>{shortBuildId(printable(build_id))}</code>
              </td>
              <td class="number">{formatCount(count)}</td>
              <td class="number" title={formatValue(ns, unit)}>
                {formatPercent(ns, whole, 1)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hint">
        {sorted.length > addressesMax && `The first ${addressesMax} of ${formatCount(sorted.length)} addresses. `}
        For a call, the address shown is the return address.
      </p>
    </>
  );
}

// File name and line stand out. The directory comes last, so it is cut first if space is short.
function Place({line}: {line: FunctionLine}) {
  if (line.file === '') return <span class="line-place">no line known</span>;
  const {directory, name} = splitPath(line.file);
  return (
    <span class="line-place">
      <b>{printable(name)}</b>
      {line.line > 0 ? <b class="line-number">{`:${line.line}`}</b> : <span>, no line known</span>}
      <span class="line-directory">{printable(directory)}</span>
    </span>
  );
}

interface RowProps {
  line: FunctionLine;
  open: boolean;
  whole: number;
  unit: string;
  reveal: (place: string) => void;
}

function Row({line, open, whole, unit, reveal}: RowProps) {
  const place = placeOf(line);
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (open) row.current?.scrollIntoView({block: 'nearest'});
  }, [open]);
  const toggle = () => {
    setView({line: open ? '' : place || unplaced});
    reveal(place);
  };
  return (
    <>
      <tr ref={row} class={open ? 'open' : undefined} data-testid="line">
        <td class="name">
          <button
            type="button"
            aria-expanded={open}
            title={place && printable(place)}
            data-testid="line-open"
            onFocus={() => reveal(place)}
            onClick={toggle}
          >
            <Place line={line} />
            {line.text !== null && <span class="line-text">{printableLine(line.text).trim() || ' '}</span>}
          </button>
          <span class="self-bar total-bar" style={{width: `${whole > 0 ? (100 * line.total_ns) / whole : 0}%`}} />
          <span class="self-bar" style={{width: `${whole > 0 ? (100 * line.self_ns) / whole : 0}%`}} />
        </td>
        <Amount ns={line.self_ns} count={line.self_count} whole={whole} unit={unit} />
        <Amount ns={line.total_ns} count={line.total_count} whole={whole} unit={unit} />
      </tr>
      {open && (
        <tr class="open-body">
          <td colSpan={3}>
            <Addresses addresses={line.addresses} whole={whole} unit={unit} />
          </td>
        </tr>
      )}
    </>
  );
}

// The value of `line` in the address, if the open row has no known place.
const unplaced = '?';

interface LineTableProps {
  lines: readonly FunctionLine[];
  totals: LineTotals;
  unit: string;
  reveal: (place: string) => void;
}

export function LineTable({lines, totals, unit, reveal}: LineTableProps) {
  const {linesSort, line: chosen} = view.value;
  const sorted = sortLines(lines, linesSort);
  const shown = sorted.slice(0, shownMax);
  const head = (column: LinesSort, label: string) => (
    <SortHead
      column={column}
      label={label}
      testId="lines-sort"
      order={linesSort !== column ? 'none' : column === 'place' ? 'ascending' : 'descending'}
      choose={() => setView({linesSort: column})}
    />
  );
  return (
    <div class="line-table">
      <div class="table-scroll">
        <table class="top" data-testid="line-table">
          <thead>
            <tr>
              {head('place', 'Line')}
              {head('self', 'Self')}
              {head('total', 'Total')}
            </tr>
          </thead>
          <tbody>
            {shown.map((line) => {
              const place = placeOf(line);
              const open = chosen !== '' && chosen === (place || unplaced);
              return <Row key={place} line={line} open={open} whole={totals.totalNs} unit={unit} reveal={reveal} />;
            })}
          </tbody>
        </table>
      </div>
      <p class="table-foot" data-testid="line-count">
        {sorted.length > shownMax
          ? `The first ${formatCount(shownMax)} of ${formatCount(sorted.length)} lines`
          : `${formatCount(sorted.length)} ${sorted.length === 1 ? 'line' : 'lines'}`}
        {`; percentages of this function’s ${formatSamples(totals.totalCount)}`}
      </p>
    </div>
  );
}

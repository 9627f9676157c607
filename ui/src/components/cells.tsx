// Cells for the tables of functions and of lines.
import {formatPercent, formatSamples} from '../model/format.ts';
import {formatValue} from '../model/measure.ts';
import {Icon} from './icons.tsx';

interface SortHeadProps {
  column: string; // class of the cell, and the end of the button's data-testid
  label: string;
  testId?: string; // begin of that data-testid
  order: 'ascending' | 'descending' | 'none';
  choose: () => void;
}

export function SortHead({column, label, testId = 'sort', order, choose}: SortHeadProps) {
  return (
    <th scope="col" class={column} aria-sort={order}>
      <button type="button" onClick={choose} data-testid={`${testId}-${column}`}>
        {label}
        {order !== 'none' && <Icon name={order === 'ascending' ? 'up' : 'down'} />}
      </button>
    </th>
  );
}

interface AmountProps {
  ns: number; // in `unit`
  count: number;
  whole: number;
  unit: string;
}

export function Amount({ns, count, whole, unit}: AmountProps) {
  const value = formatValue(ns, unit);
  return (
    <td class="amount" title={`${value}, ${formatSamples(count)}`}>
      <span class="amount-percent">{formatPercent(ns, whole, 1)}</span>
      <span class="amount-time">{value}</span>
    </td>
  );
}

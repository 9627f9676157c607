// What tables of functions and of lines share.
import {formatDuration, formatPercent, formatSamples} from '../model/format.ts';
import {Icon} from './icons.tsx';

interface SortHeadProps {
  column: string; // class of the cell and end of its data-testid
  label: string;
  testId?: string; // before the column
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

export function Amount({ns, count, whole}: {ns: number; count: number; whole: number}) {
  return (
    <td class="amount" title={formatSamples(count)}>
      <span class="amount-percent">{formatPercent(ns, whole, 1)}</span>
      <span class="amount-time">{formatDuration(ns)}</span>
    </td>
  );
}

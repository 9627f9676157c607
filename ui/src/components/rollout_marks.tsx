// Marks above the timeline, where workloads began to run another version. A click shows the half hour before and the
// half hour after.
import {type Mark, rolloutRange, rolloutText} from '../model/rollouts.ts';
import {absoluteRange} from '../model/time_range.ts';
import {setView} from '../state.ts';

const namedMax = 8; // rollouts in one tooltip

function titleOf(mark: Mark): string {
  const lines = mark.rollouts.slice(0, namedMax).map(rolloutText);
  if (mark.rollouts.length > namedMax) lines.push(`and ${mark.rollouts.length - namedMax} more`);
  return lines.join('\n');
}

export function RolloutMarks({marks, offset}: {marks: readonly Mark[]; offset: number}) {
  return (
    <div class="rollout-marks">
      {marks.map((mark) => {
        const title = titleOf(mark);
        const {from, to} = rolloutRange(mark.rollouts[0]!, Date.now());
        return (
          <button
            key={mark.left}
            type="button"
            class="rollout-mark"
            data-testid="rollout"
            style={{left: `${offset + mark.left}px`}}
            title={title}
            aria-label={`Rollout: ${title}`}
            onClick={() => setView({...absoluteRange(from, to), live: false})}
          />
        );
      })}
    </div>
  );
}

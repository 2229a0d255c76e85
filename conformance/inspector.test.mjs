import assert from 'node:assert/strict';
import test from 'node:test';
import { findings } from './inspector.mjs';

test('the linter’s report is read whole', () => {
  assert.deepEqual(findings(''), []);
  assert.deepEqual(findings(`Warning: tool "a"
  Path: inputSchema.properties.data
  Issue: no keyword
  Suggestion: another

Error: tool "b_c"
  Path: outputSchema
  Issue: Bare \`true\`

1 error, 1 warning across 2 tools.
`), ['a inputSchema.properties.data', 'b_c outputSchema']);
});

test('a report that is not understood is no clean bill', () => {
  assert.throws(() => findings('2 errors, 0 warnings across 1 tool.\n'), /not understood/);
});

// Prints the path of each target on its input, as new URL reads it, or url.parse where that is the argument.
import { readFileSync } from 'node:fs';
import { parse } from 'node:url';

const [, , which] = process.argv;
for (const target of readFileSync(0, 'utf8').split('\n').slice(0, -1)) {
  let path = '!';
  try {
    path = which === 'parse' ? parse(target, false, true).pathname : new URL(target, 'http://shop').pathname;
  } catch {
    // invalid
  }
  console.log(path ?? '!');
}

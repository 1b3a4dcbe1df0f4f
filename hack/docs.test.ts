// SPDX-License-Identifier: Apache-2.0
// The documents hold together: links lead somewhere, the index has every guide, and the words that a reader is told to look
// for are words of the program.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path));
const documents = [...readdirSync(root), ...filesIn('docs')].filter((path) => path.endsWith('.md'));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** The anchors of a document's headings, as they are made on a code host. */
function anchorsOf(path: string): Set<string> {
  const headings = read(path).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test.each(documents)('links of %s lead somewhere', (path) => {
  const text = read(path).replaceAll(/```.*?```|`[^`\n]*`/gs, '');
  const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^\w+:/.test(target))
    .filter((target) => {
      const [file = '', anchor] = target.split('#');
      const found = file === '' ? path : relative(root, join(root, dirname(path), file));
      if (!existsSync(join(root, found))) return true;
      return anchor !== undefined && found.endsWith('.md') && !anchorsOf(found).has(anchor);
    });
  expect(broken).toEqual([]);
});

test('the index has every document', () => {
  const index = read('docs/README.md');
  const missing = documents
    .filter((path) => path.startsWith('docs') && !path.includes('decisions') && path !== join('docs', 'README.md'))
    .map((path) => relative('docs', path).replaceAll('\\', '/'))
    .filter((path) => !index.includes(`](${path})`));
  expect(missing).toEqual([]);
});

test('every nightly run that is told of is one that can be asked for', () => {
  const rows = [...read('hack/nightly.ts').matchAll(/^ {2}'?([a-z-]+)'?: \{/gm)].map(([, name]) => name!);
  const told = [...documents, ...filesIn('hack'), ...filesIn('test'), ...filesIn('benchmarks')]
    .filter((path) => /\.(md|ts)$/.test(path))
    .flatMap((path) => [...read(path).matchAll(/npm run nightly -- ([a-z][a-z-]*)/g)].map(([, name]) => name!));
  expect(told.length).toBeGreaterThan(5);
  expect(told.filter((name) => !rows.includes(name))).toEqual([]);
});

test('every test that the threat model names is there, and every claim about an attacker names one', () => {
  const text = read('docs/security.md');
  const sources = [...filesIn('src'), ...filesIn('hack'), ...filesIn('test')].filter((path) =>
    path.endsWith('.test.ts'),
  );
  const all = sources.map(read).join('\n');
  const spans = [...text.replaceAll('\n', ' ').matchAll(/`([^`]+)`/g)].map(([, span]) => span!);
  // Names of tests are sentences; `%s` and the like stand for what a row of a table gives.
  const named = spans.filter((span) => span.split(' ').length > 3 && !span.startsWith('npm '));
  const isThere = (name: string): boolean =>
    all.includes(name) || all.includes(name.replace(/^.*?(?= is no answer: )/, '%s'));
  expect(named.length).toBeGreaterThan(25);
  expect(named.filter((name) => !isThere(name))).toEqual([]);
  const files = spans.filter((span) => /\.(?:test\.)?ts$/.test(span));
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const claims = text
    .split(/^## /m)
    .filter((section) => /^(?:What a hostile|Keys|Bytes|Secrets)/.test(section))
    .flatMap((section) => section.split('\n').filter((line) => line.startsWith('- ')));
  // Advice and purposes are no claims.
  const unproven = claims.filter((line) => !line.includes('`') || !/`[^`]*(?: [^`]*){3}`|\.test\.ts`/.test(line));
  expect(unproven).toEqual([
    '- It can spend what its NodeClass allows. That is its purpose.',
    "- Kubelets are held to their own Node by the API server's NodeRestriction plugin; keep it on.",
  ]);
});

test('every reason, condition and metric in the guide to trouble is one of the program', () => {
  const sources = filesIn('src')
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .map(read)
    .join('\n');
  // Kubernetes' own.
  const known = new Set(['True', 'False', 'Unknown', 'Unschedulable', 'PodScheduled', 'Terminating', 'Never', 'READY']);
  const words = [
    ...read('docs/troubleshooting.md').matchAll(/`((?:[A-Z][A-Za-z]+)|(?:karpenter_\w+)|(?:\w+_timeout))`/g),
  ];
  const missing = new Set(
    words.map(([, word]) => word!).filter((word) => !known.has(word) && !sources.includes(`'${word}'`)),
  );
  expect([...missing]).toEqual([]);
});

test('the limits of the search in the guide to disruption are those of the program', () => {
  const [search, page] = [read('src/scheduling/removal/consolidate.ts'), read('docs/disruption.md')];
  const flat = page.replaceAll(/\s+/g, ' ');
  const constant = (name: string): number => Number(new RegExp(`^const ${name} = ([\\d._]+);$`, 'm').exec(search)?.[1]);
  expect(flat).toContain(`save more than ${constant('promising') * 100} % of their price`);
  expect(flat).toContain(`${constant('largestChunk')} of the most wasteful nodes together`);
  expect(flat).toContain(`at most ${constant('largestCommand')} nodes`);
  // The ways are numbered as the program tries them.
  const ways = /^const strategies.*?\n\];/ms.exec(search)![0].match(/^ {2}\S.*,$/gm)!;
  expect(search).toContain('isLarge ? [plain] :');
  const ordinal = ['first', 'second', 'third', 'fourth'][ways.indexOf('  plain,')];
  expect(flat).toContain(`With more than ${constant('largeCluster')} candidates only the ${ordinal} way`);
  expect(flat).toContain(`replace up to ${constant('largeCluster')} nodes in one command`);
});

/** The fields of an event by its type, as the sources declare them: `name`, `name?`, and `name.part` of nested ones. */
function declaredEvents(source: string): Map<string, string[]> {
  const bodies = new Map(
    [...source.replaceAll(/\/\*\*.*?\*\//gs, '').matchAll(/interface (\w+)[^{]*\{\n(.*?)\n\}/gs)].map(
      ([, name, body]) => [name!, body!],
    ),
  );
  const fieldsOf = (body: string, prefix: string): string[] => {
    const fields: string[] = [];
    const path: string[] = [];
    for (const [token, name, mark = '', type = ''] of body.matchAll(/readonly (\w+)(\??): (?:readonly )?(\w*)|[{}]/g)) {
      if (token === '{') path.push(`${fields.at(-1)!.slice(prefix.length).replace('?', '')}.`);
      else if (token === '}') path.pop();
      else {
        fields.push(`${prefix}${path.at(-1) ?? ''}${name}${mark}`);
        const part = bodies.get(type);
        if (part) fields.push(...fieldsOf(part, `${prefix}${name}.`));
      }
    }
    return fields;
  };
  const events = [...bodies.values()].flatMap((body) => {
    const type = /type: '(\w+)'/.exec(body)?.[1];
    return type === undefined ? [] : [[type, fieldsOf(body, '').filter((field) => field !== 'type')] as const];
  });
  return new Map(events);
}

test('the reference of the demo has every event with every field, and no other', () => {
  const sections = read('docs/reference/demo-events.md').split(/^## /m).slice(1);
  const documented = sections.map((section): [string, string[]] => {
    const cells = [...section.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell]) => cell!);
    return [
      section.split('\n')[0]!,
      cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)),
    ];
  });
  const declared = declaredEvents(read('src/cli/demo/events.ts'));
  expect([...declared.keys()].length).toBeGreaterThan(8);
  expect(new Map(documented)).toEqual(declared);
});

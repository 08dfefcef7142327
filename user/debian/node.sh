# Node.js: files, processes, workers, streams, timers
set -e
cat >all.js <<'J'
const fs = require('fs'), { execFileSync, spawn } = require('child_process'), { Worker, isMainThread, parentPort } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), { pipeline } = require('stream/promises');
if (!isMainThread) { let sum = 0; for (let i = 0; i < 1e6; i++) sum += i % 7; parentPort.postMessage(sum); return; }
(async () => {
  console.log(process.version.split('.')[0], process.platform, process.arch);
  fs.mkdirSync('d/e/f', { recursive: true });
  for (let i = 0; i < 200; i++) await fs.promises.writeFile(`d/e/${i}`, 'x'.repeat(i));
  console.log((await fs.promises.readdir('d/e')).length, fs.statSync('d/e/150').size);
  console.log(execFileSync('sh', ['-c', 'echo from a process; exit 0']).toString().trim());
  const child = spawn('sort', ['-rn']); let out = ''; child.stdout.on('data', d => out += d);
  for (let i = 0; i < 2000; i++) child.stdin.write(i + '\n'); child.stdin.end();
  console.log('sort ended', await new Promise(done => child.on('close', done)), out.split('\n').length);
  console.log(await Promise.all([1, 2, 3].map(() => new Promise(done => new Worker(__filename).on('message', done)))));
  fs.writeFileSync('big', Buffer.alloc(3e6, 'abc'));
  await pipeline(fs.createReadStream('big'), zlib.createGzip(), zlib.createGunzip(), fs.createWriteStream('copy'));
  console.log(crypto.createHash('sha256').update(fs.readFileSync('copy')).digest('hex'));
  let ticks = 0; await new Promise(done => { const t = setInterval(() => { if (++ticks == 5) { clearInterval(t); done(); } }, 10); });
  console.log('ticks', ticks);
  const seen = new Promise(done => fs.watch('d', (kind, name) => done(name))); fs.writeFileSync('d/new', 'x');
  console.log('watched', await seen);
  process.exit(0);
})();
J
node all.js

// Worker threads of Node.js that share memory, and its pool of threads below.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const crypto = require('crypto');

if (!isMainThread) {
    const words = new Int32Array(workerData.shared);
    for (let i = 0; i < 5000; i++)
        Atomics.add(words, 0, 1);
    Atomics.add(words, 1, 1);
    Atomics.notify(words, 1);
    parentPort.postMessage(workerData.index * workerData.index);
} else {
    const shared = new SharedArrayBuffer(8);
    const answers = [];
    for (let index = 0; index < 4; index++) {
        const worker = new Worker(__filename, { workerData: { shared, index } });
        worker.on('message', (value) => answers.push(value));
        worker.on('exit', (code) => {
            if (answers.length === 4 && code === 0 && !answers.printed) {
                answers.printed = true;
                const words = new Int32Array(shared);
                console.log('added', words[0], 'ended', words[1], 'answers', answers.sort().join(' '));
            }
        });
    }
    const hashes = [];
    for (let i = 0; i < 4; i++)
        crypto.pbkdf2('tide' + i, 'salt', 500, 16, 'sha256', (error, key) => {
            hashes[i] = error ? error.message : key.toString('hex');
            if (hashes.filter(Boolean).length === 4)
                console.log('hashes', hashes.join(' '));
        });
}

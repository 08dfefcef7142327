# Servers of Python, asyncio, Node.js and Go, fetched from with curl, wget and each other
set -e
ip link set lo up
mkdir -p web && seq 100000 >web/numbers && cd web
wait_for() { until nc -z 127.0.0.1 "$1"; do sleep 0.1; done; }
python3 -m http.server --bind 127.0.0.1 9000 >/dev/null 2>&1 & p1=$!
cat >../echo.py <<'P'
import asyncio, socket
async def serve(reader, writer):
    while data := await reader.read(65536): writer.write(data); await writer.drain()
    writer.close()
async def client(n):
    reader, writer = await asyncio.open_connection('127.0.0.1', 9001)
    sent = bytes([n]) * (n * 5000 + 1)
    writer.write(sent); writer.write_eof()
    seen = await reader.read(); writer.close()
    assert seen == sent, n
    return len(seen)
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 9001)
    print('asyncio', sum(await asyncio.gather(*(client(n) for n in range(60)))))
    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport): self.transport = transport
        def datagram_received(self, data, address): self.transport.sendto(data.upper(), address)
    class Ask(asyncio.DatagramProtocol):
        def __init__(self): self.seen = asyncio.get_running_loop().create_future()
        def connection_made(self, transport): transport.sendto(b'datagram')
        def datagram_received(self, data, address): self.seen.set_result(data)
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(Echo, local_addr=('::1', 9002))
    _, ask = await loop.create_datagram_endpoint(Ask, remote_addr=('::1', 9002))
    print(await ask.seen)
asyncio.run(main())
P
python3 ../echo.py
cat >../server.js <<'J'
const http = require('http'), fs = require('fs'), net = require('net');
const server = http.createServer((request, response) => {
  if (request.method == 'POST') { let n = 0; request.on('data', d => n += d.length).on('end', () => response.end(`took ${n}\n`)); }
  else if (request.url == '/end') { response.end('bye\n'); server.close(); server.closeIdleConnections?.(); }
  else fs.createReadStream('.' + request.url).on('error', () => { response.statusCode = 404; response.end('none\n'); }).pipe(response);
}).listen(9003, '::');
J
node ../server.js & p2=$!
mkdir -p ../go && cat >../go/main.go <<'G'
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	done := make(chan bool)
	http.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "bye"); close(done) })
	http.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) { n, _ := io.Copy(io.Discard, r.Body); fmt.Fprintln(w, n) })
	http.Handle("/", http.FileServer(http.Dir(".")))
	go http.ListenAndServe("127.0.0.1:9004", nil)
	var all sync.WaitGroup
	var lock sync.Mutex
	total := int64(0)
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < 5; j++ {
				r, err := http.Get(os.Args[1] + "/numbers")
				if err != nil {
					fmt.Println(err)
					return
				}
				n, _ := io.Copy(io.Discard, r.Body)
				r.Body.Close()
				lock.Lock()
				total += n
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	fmt.Println("go fetched", total)
	<-done
}
G
(cd ../go && GOFLAGS=-mod=mod GO111MODULE=off go build -o ../fetch main.go)
wait_for 9000; wait_for 9003
../fetch http://localhost:9003 >../fetched & p3=$!
wait_for 9004
for port in 9000 9003 9004; do
    curl -sS --max-time 60 http://127.0.0.1:$port/numbers | sha256sum
    wget -q -O - http://localhost:$port/numbers | sha256sum
    curl -sS -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$port/none
done
curl -sS --data-binary @numbers http://127.0.0.1:9003/; curl -sS -T numbers http://127.0.0.1:9004/count; curl -sS --limit-rate 3M http://127.0.0.1:9003/numbers | wc -c
curl -sS http://127.0.0.1:9003/end http://127.0.0.1:9004/end
wait $p2 $p3; kill $p1; cat ../fetched

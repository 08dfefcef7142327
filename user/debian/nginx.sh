# nginx: static files, keep-alive, TLS, a reverse proxy, what it answers under load
set -e
ip link set lo up
mkdir -p web/d && cd web
head -c 300000 /dev/zero | tr '\0' x >large; seq 2000 >d/numbers; echo small >small
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 30 -subj /CN=localhost 2>/dev/null
cat >conf <<C
user root; worker_processes 2; pid $PWD/pid; error_log $PWD/errors notice;
events { worker_connections 512; }
http {
    access_log $PWD/access; types { text/plain txt; } default_type application/octet-stream;
    sendfile on; tcp_nopush on; gzip on; gzip_types application/octet-stream; gzip_min_length 1000;
    client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy; fastcgi_temp_path $PWD/fastcgi; uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
    server { listen 8080 reuseport; listen [::]:8080; root $PWD; location = /status { return 204; } location /d/ { autoindex on; } }
    server { listen 8443 ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem; root $PWD; }
    upstream back { server 127.0.0.1:8080; keepalive 8; }
    server { listen 127.0.0.1:8081; location / { proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; } }
    server { listen unix:$PWD/socket; root $PWD; }
}
C
chmod 755 .. .
nginx -t -c $PWD/conf 2>&1 | sed "s#$PWD#.#g"
nginx -c $PWD/conf
get() { curl -sS --max-time 60 -o - "$@" | sha256sum; }
for path in small large d/numbers; do get http://127.0.0.1:8080/$path; get "http://[::1]:8080/$path"; get -k https://localhost:8443/$path; get http://127.0.0.1:8081/$path; get --unix-socket socket http://x/$path; done
get --compressed http://127.0.0.1:8080/large
curl -sS -r 100-119 -i http://127.0.0.1:8080/d/numbers | tr -d '\r' | grep -E '^(HTTP|Content-(Range|Length))'
curl -sS -o /dev/null -w '%{http_code} %{num_connects}\n' http://127.0.0.1:8080/small http://127.0.0.1:8080/none http://127.0.0.1:8080/status
curl -sS -X POST --data-binary @large -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/small
for kept in '' -k; do ab -q $kept -n 2000 -c 20 http://127.0.0.1:8080/small | grep -E '^(Complete|Failed|Keep-Alive|Total tr|HTML)' ; done
ab -q -n 200 -c 10 http://127.0.0.1:8081/large | grep -E '^(Complete|Failed|HTML)'
ab -q -n 100 -c 10 https://127.0.0.1:8443/small | grep -E '^(Complete|Failed|HTML)'
nginx -c $PWD/conf -s reload; sleep 1; get http://127.0.0.1:8080/small
kill -USR1 $(cat pid); sleep 1; get http://127.0.0.1:8080/small; nginx -c $PWD/conf -s quit
until ! [ -e pid ]; do sleep 0.1; done
grep -c . access; grep -E 'alert|crit|emerg' errors | sed 's/.*\[/[/' || true
curl -sS http://127.0.0.1:8080/ 2>&1 | sed 's/after .* ms/after some ms/' || true

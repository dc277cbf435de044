// Debian's nginx as a reverse proxy in front of one server, configured as its documentation shows.
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, makeFolder, reach, start, stop } from "./processes.mjs";

const program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].find(existsSync) ?? "nginx";

const config = (folder, port, target) => `
pid ${folder}/nginx.pid;
error_log stderr error;
worker_processes auto;
daemon off;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/bodies;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000000;
  upstream worker { server ${target}; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://worker;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header Authorization "";
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`;

/** Starts nginx in front of `target` (host:port); resolves with its address. It ends with its scope. */
export async function startNginx(scope, target) {
  const folder = makeFolder(scope);
  chmodSync(folder, 0o755); // if root starts it, its workers run as another user
  const port = await freePort();
  writeFileSync(join(folder, "nginx.conf"), config(folder, port, target));
  const child = start(program, ["-p", folder, "-c", join(folder, "nginx.conf")]);
  scope.defer(() => stop(child));
  const url = `http://127.0.0.1:${port}`;
  await reach("an answer of nginx", async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}.`);
    const reply = await fetch(url).catch(() => undefined);
    await reply?.arrayBuffer();
    return reply?.status === 200;
  });
  return url;
}

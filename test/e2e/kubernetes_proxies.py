"""Proxies between k8s-collector and a test's API server. They connect to this server whatever the client names."""

import base64
import contextlib
import socket
import ssl
import threading


class Proxy:
    """Accepts connections, and relays them to a port of this machine after negotiate() has returned the target."""

    def __init__(self, port_behind, password, certificate=None):
        self.port_behind = port_behind
        self.password = password
        self.targets = []  # "HOST:PORT" of each connection that was made
        self.context = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError, EOFError), client:
            if self.context is not None:
                client = self.context.wrap_socket(client, server_side=True)
            target = self.negotiate(client)
            if target is None:
                return
            self.targets.append(target)
            with socket.create_connection(("127.0.0.1", self.port_behind)) as server:
                back = threading.Thread(target=relay, args=(server, client), daemon=True)
                back.start()
                relay(client, server)
                back.join()

    def negotiate(self, client):
        raise NotImplementedError


def relay(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def receive(client, size):
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class ConnectProxy(Proxy):
    """An HTTP proxy with the user "user" and a password, with or without TLS."""

    def negotiate(self, client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += receive(client, 1)
        lines = head.decode().split("\r\n")
        expected = base64.b64encode(f"user:{self.password}".encode()).decode()
        if f"Proxy-Authorization: Basic {expected}" not in lines or any(line.startswith("Authorization:") for line in lines):
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return None
        method, target, _ = lines[0].split(" ")
        if method != "CONNECT":
            client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return None
        client.sendall(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")
        return target


class SocksProxy(Proxy):
    """SOCKS 5 (RFC 1928) with user name and password (RFC 1929). Takes only host names, not addresses."""

    def negotiate(self, client):
        _, count = receive(client, 2)
        methods = receive(client, count)
        if 2 not in methods:
            client.sendall(b"\x05\xff")
            return None
        client.sendall(b"\x05\x02")
        receive(client, 1)
        user, password = (receive(client, receive(client, 1)[0]).decode() for _ in range(2))
        accepted = (user, password) == ("user", self.password)
        client.sendall(b"\x01\x00" if accepted else b"\x01\x01")
        _, command, _, kind = receive(client, 4)
        if not accepted or command != 1 or kind != 3:
            return None
        host = receive(client, receive(client, 1)[0]).decode()
        port = int.from_bytes(receive(client, 2), "big")
        client.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return f"{host}:{port}"

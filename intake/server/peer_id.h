#pragma once

#include <string>
#include <vector>

namespace tributary::intake {

// What a connection shows about its peer.
struct PeerFacts {
  std::string address;                         // Stream::peer
  std::vector<std::string> certificate_names;  // of the verified client certificate; empty: none is required
  std::string token_pattern;                   // node ids for which its token is valid; "": no token is required
};

constexpr size_t kPeerIdBytes = 32;

// Returns an id of the peer. One machine can invent any number of node ids, so the reducer compares these ids before it
// counts two nodes as two witnesses. Two ids differ if the credentials are for other names, or if the addresses differ.
// So each node that has a credential of its own counts for itself, even behind a shared address. Nodes that share a
// credential, or need none, are distinguished only by their addresses. Of an IPv6 address, only the network (/64)
// counts, because one machine may use all addresses of a network. The port does not count.
//
// The id has kPeerIdBytes hexadecimal digits: a part of a SHA-256. It is stored on disk, so do not change it.
std::string PeerId(const PeerFacts& facts);

}  // namespace tributary::intake

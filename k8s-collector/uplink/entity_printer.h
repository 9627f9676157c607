#pragma once

#include <cstdio>
#include <string>

#include "intake/metadata/metadata_feed.h"

namespace tributary {

// Writes what a reducer would be told as JSON lines: {"kind": …, "id": …, "from": …, "attributes": {…}}, with
// "gone": true for what has ended at `from`, and {"complete": true} at a snapshot's end. On the feed's thread.
class EntityPrinter {
 public:
  EntityPrinter(intake::MetadataFeed& feed, std::FILE* out) : feed_(feed), out_(out) {}
  void Print();  // what has changed since the last call

 private:
  intake::MetadataFeed& feed_;
  std::FILE* const out_;
  intake::MetadataFeed::Cursor cursor_;
};

std::string EntityLine(const Entity& entity);

}  // namespace tributary

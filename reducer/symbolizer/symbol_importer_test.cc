#include "reducer/symbolizer/symbol_importer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/directory_testing.h"
#include "reducer/symbolizer/extractor_testing.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

const ExecutableId kId = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\xab", 2));
const ExecutableId kOther = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x02\xab", 2));

class SymbolImporterTest : public ::testing::Test {
 protected:
  absl::StatusOr<SymbolImporter::Imported> ImportBytes(std::string_view bytes, ExecutableId claimed = {}) {
    const Fd file(memfd_create("file", MFD_CLOEXEC));
    EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return importer_.Import({.fd = file.get(), .claimed = claimed, .name = "test"});
  }
  static std::string TableFileOf(const ExecutableId& id) {
    const auto table = BuildSymbolTable(id, SymbolSource::kSymtab, {{0x1000, 0x80, "f"}});
    const std::string encoded = EncodeSymbolTable(*table);
    return PackTableFile(DescribeTable(*table, encoded), encoded, 1);
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  SymbolNotices notices_{clock_};
  std::unique_ptr<SymbolStore> store_ =
      *SymbolStore::Open({.directory = directory_.path() + "/symbols"}, clock_, metrics_);
  SymbolExtractor extractor_{{}, ForkExtractor, metrics_};
  SymbolImporter importer_{*store_, extractor_, notices_};
};

TEST_F(SymbolImporterTest, KeepsATablesFile) {
  const auto imported = ImportBytes(TableFileOf(kId), kId);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->kept.stored);
  EXPECT_EQ(imported->kept.row.origin(), SymbolOrigin::kUpload);
  ASSERT_NE(store_->Get(kId), nullptr);
  EXPECT_EQ(store_->Get(kId)->Find(0x1000)->name, "f");
  EXPECT_TRUE(notices_.List().empty());
}

TEST_F(SymbolImporterTest, KeepsAProgram) {
  const Fd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto imported = importer_.Import({.fd = self.get(), .name = "self"});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->kept.row.header.source, SymbolSource::kDwarf);
  EXPECT_NE(store_->Get(imported->kept.row.header.id), nullptr);
}

TEST_F(SymbolImporterTest, RefusesFalseFilesAndAddsNotices) {
  EXPECT_EQ(ImportBytes(TableFileOf(kId), kOther).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportBytes("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportBytes("#!/bin/sh\n").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ImportBytes(TableFileOf(kId).substr(0, 90)).status().code(), absl::StatusCode::kInvalidArgument);
  std::string lie = TableFileOf(kId);
  lie[16] = 2;  // the header names another executable than the table
  EXPECT_EQ(ImportBytes(lie).status().code(), absl::StatusCode::kInvalidArgument);
  const auto list = notices_.List();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[3].executable, "02ab");
  EXPECT_THAT(list[3].text, HasSubstr("the file is the symbol table of 01ab, not of 02ab"));
  EXPECT_THAT(list[2].text, HasSubstr("neither an ELF file"));
  EXPECT_EQ(list[2].times, 2u);
}

}  // namespace
}  // namespace tributary

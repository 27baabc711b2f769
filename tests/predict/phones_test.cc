#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/phone_evaluation.h"
#include "predict/phone_features.h"

namespace tandem::predict {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSchema = R"({
  "name": "test", "group_column": "net", "operator_column": "op",
  "arguments": {"input_size": "in", "input_channels": "ic", "output_size": "out",
                "output_channels": "oc", "kernel_size": "k"},
  "operators": {"conv": "convolution", "dw": "depthwise", "mean": "mean"},
  "kernels": {"conv_2d": "direct", "wino_4x4": "winograd", "depth": "depthwise"},
  "fused_separator": "+", "us_per_unit": 1000,
  "devices": [{"name": "one", "gpu": "adreno", "compute_units": 2, "time_column": "ms",
               "kernel_column": "kernel"}]
})";

constexpr const char* kHeader = "net,op,in,ic,out,oc,k,ms,kernel\n";

StatusOr<PhoneData> read(const std::string& rows, const std::string& schema = kSchema) {
  const StatusOr<PhoneSchema> parsed = PhoneSchema::parse(schema);
  EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
  TANDEM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::parse(rows));
  return read_phone_data(table, *parsed);
}

std::string error_of(const std::string& rows) { return read(rows).status().message(); }

TEST(CsvTest, ReadsQuotes) {
  const StatusOr<CsvTable> table = CsvTable::parse("a,b\r\n\"1,\"\"x\"\"\n2\",3\r\n\r\n,4");
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  ASSERT_EQ(table->rows(), 2u);
  EXPECT_EQ(table->at(0, 0), "1,\"x\"\n2");
  EXPECT_EQ(table->at(0, 1), "3");
  EXPECT_EQ(table->at(1, 0), "");
  EXPECT_EQ(table->line(1), 5u);
}

TEST(CsvTest, RefusesWhatIsNoTable) {
  EXPECT_THAT(CsvTable::parse("").status().message(), HasSubstr("empty"));
  EXPECT_THAT(CsvTable::parse("a,b\n").status().message(), HasSubstr("no rows"));
  EXPECT_THAT(CsvTable::parse("a,b\n1,2\n1\n").status().message(), HasSubstr("line 3"));
  EXPECT_THAT(CsvTable::parse("a,b\n\"1,2\n").status().message(), HasSubstr("line 2"));
  EXPECT_EQ(CsvTable::read("/nonexistent.csv").status().code(), StatusCode::kNotFound);
}

TEST(PhoneDataTest, ReadsByTheSchema) {
  const StatusOr<PhoneData> data = read(std::string(kHeader) +
                                        "a,dw,16,8,14,1,3,0.5,depth_3\n"
                                        "a,conv,14,8,14,24,1,2,conv_2d_4+relu_5+add_6\n"
                                        "b,mean,7,64,64,-,,1,reduce_1_2\n");
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  const PhoneOperator& depthwise = data->operators[0];
  EXPECT_EQ(depthwise.output_channels, 8);
  EXPECT_TRUE(depthwise.feeds_pointwise);
  EXPECT_FALSE(depthwise.follows_depthwise);
  EXPECT_TRUE(data->operators[1].follows_depthwise);
  EXPECT_EQ(data->operators[2].output_size, 1);
  EXPECT_EQ(data->operators[2].kernel_size, 1);  // none given
  const PhoneMeasurement& convolution = data->measured[0][1];
  EXPECT_EQ(convolution.us, 2000);
  EXPECT_EQ(convolution.kernel, KernelKind::kDirect);
  EXPECT_EQ(convolution.kernel_name, "conv_2d+relu+add");
  EXPECT_EQ(convolution.fused.adds, 1);
  EXPECT_EQ(convolution.fused.gates, 1);
  EXPECT_EQ(data->measured[0][2].kernel, KernelKind::kOther);
}

TEST(PhoneDataTest, SaysWhatIsWrong) {
  const std::string header = kHeader;
  EXPECT_THAT(error_of("net,op,in,ic,out,oc,k,kernel\na,conv,1,1,1,1,1,x\n"),
              HasSubstr("no column 'ms'"));
  EXPECT_THAT(error_of(header + "a,conv,1,1,1,1,1,fast,x\n"),
              ::testing::AllOf(HasSubstr("line 2"), HasSubstr("'ms'"), HasSubstr("'fast'")));
  EXPECT_THAT(error_of(header + "a,conv,1,1,1,1,1,0,x\n"), HasSubstr("positive"));
  EXPECT_THAT(error_of(header + "a,conv,1,four,1,1,1,1,x\n"), HasSubstr("input_channels"));
  EXPECT_THAT(error_of(header + "a,conv,1,0,1,1,1,1,x\n"), HasSubstr("1 or more"));
  EXPECT_THAT(error_of(header + "a,conv,1,1e300,1,1,1,1,x\n"), HasSubstr("input_channels"));
  EXPECT_THAT(error_of(header + "a,lstm,1,1,1,1,1,1,x\n"), HasSubstr("'lstm'"));
}

TEST(PhoneSchemaTest, SaysWhatIsWrong) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kSchema;
    text.replace(text.find(from), from.size(), to);
    return PhoneSchema::parse(text).status().message();
  };
  EXPECT_THAT(error("group_column", "groups"), HasSubstr("group_column"));
  EXPECT_THAT(error("\"convolution\"", "\"matmul\""), HasSubstr("'matmul'"));
  EXPECT_THAT(error("\"winograd\"", "\"fft\""), HasSubstr("'fft'"));
  EXPECT_THAT(error("adreno", "riva"), HasSubstr("'riva'"));
  EXPECT_THAT(error("input_size", "inputs"), HasSubstr("'inputs'"));
  EXPECT_THAT(error("1000", "-1"), HasSubstr("us_per_unit"));
  EXPECT_FALSE(PhoneSchema::parse("{").ok());
  EXPECT_THAT(PhoneSchema::load("nothing").status().message(), HasSubstr("'nothing'"));
  EXPECT_TRUE(PhoneSchema::load("phones").ok());
}

PhoneOperator convolution(double size, double input, double output, double kernel) {
  return {.network = "n",
          .name = "conv",
          .shape = "s",
          .family = Family::kConvolution,
          .code = 0,
          .input_size = size,
          .input_channels = input,
          .output_size = size,
          .output_channels = output,
          .kernel_size = kernel};
}

TEST(PhoneFeaturesTest, CountsWorkAndPadding) {
  const PhoneOperator op = convolution(7, 6, 10, 3);
  const PhoneDevice device{.name = "d", .maker = GpuMaker::kApple, .compute_units = 4};
  const PhoneFacts facts(op, device, 2, KernelKind::kDirect, {});
  EXPECT_EQ(facts.flops, 2 * 7 * 7 * 6 * 10 * 9);
  EXPECT_EQ(facts.input_bytes, 7 * 7 * 6 * 2);
  EXPECT_EQ(facts.weight_bytes, 9 * 6 * 10 * 2);
  EXPECT_EQ(facts.input_slices, 2);
  EXPECT_EQ(facts.output_slices, 3);
  // Blocks of 2 x 2 pixels and 2 slices cover 8 x 8 and 4.
  EXPECT_EQ(facts.items(), 4 * 4 * 2);
  const std::vector<double> row = phone_row(facts);
  EXPECT_NEAR(row[phone_frame().column("block_waste")], 8.0 * 8 * 4 / (7 * 7 * 3), 1e-12);
  EXPECT_NEAR(row[phone_frame().column("channel_padding")], 8.0 * 12 / (6 * 10), 1e-12);
}

TEST(PhoneFeaturesTest, WinogradMultipliesTilesOfSix) {
  const PhoneOperator op = convolution(14, 64, 64, 3);
  const PhoneDevice device{.name = "d", .maker = GpuMaker::kMali, .compute_units = 12};
  const PhoneFacts facts(op, device, 2, KernelKind::kWinograd, {});
  EXPECT_EQ(facts.tiles, 16);
  EXPECT_EQ(facts.grid_width * facts.grid_height, 16 * 36);
  EXPECT_EQ(facts.steps, 16);
}

TEST(PhoneFeaturesTest, RecommendsWinogradFromSixtyFourChannelsAndThirtyTwoTilesOn) {
  const auto recommends = [](GpuMaker maker, double size, double input, double output) {
    const PhoneDevice device{.name = "d", .maker = maker, .compute_units = 4};
    const PhoneOperator op = convolution(size, input, output, 3);
    return PhoneFacts(op, device, 2, KernelKind::kDirect, {}).recommends_winograd;
  };
  EXPECT_TRUE(recommends(GpuMaker::kMali, 28, 64, 61));
  EXPECT_FALSE(recommends(GpuMaker::kMali, 28, 60, 64));
  EXPECT_FALSE(recommends(GpuMaker::kMali, 20, 64, 64));
  EXPECT_FALSE(recommends(GpuMaker::kAdreno, 28, 64, 64));
}

TEST(PhoneFeaturesTest, EveryFeatureIsExplained) {
  std::set<std::string> names;
  for (const PhoneFeature& f : phone_features()) {
    EXPECT_TRUE(names.insert(f.feature.name).second) << f.feature.name;
    EXPECT_FALSE(f.feature.unit.empty()) << f.feature.name;
    EXPECT_FALSE(f.feature.why.empty()) << f.feature.name;
  }
}

// Twelve networks on two devices; the second takes three times as long, and Winograd where there
// are many channels.
PhoneData synthetic(const PhoneSchema& schema) {
  PhoneData data;
  data.measured.resize(2);
  for (int network = 0; network < 12; ++network) {
    for (int layer = 0; layer < 12; ++layer) {
      PhoneOperator op = convolution(7 * (1 + layer % 3), 8 * (1 + (network + layer) % 9),
                                     16 * (1 + (network * layer) % 5), layer % 2 == 0 ? 1 : 3);
      op.network = "n" + std::to_string(network);
      op.shape = std::to_string(op.output_size) + "/" + std::to_string(op.input_channels) + "/" +
                 std::to_string(op.output_channels) + "/" + std::to_string(op.kernel_size);
      const bool winograd = op.kernel_size == 3 && op.input_channels >= 32;
      for (int device = 0; device < 2; ++device) {
        PhoneMeasurement measured;
        measured.kernel = device == 1 && winograd ? KernelKind::kWinograd : KernelKind::kDirect;
        measured.kernel_name = to_string(measured.kernel);
        const PhoneFacts facts(op, schema.devices[device], 2, measured.kernel, {});
        measured.us = (5 + facts.flops / 1e5) * (device == 1 ? 3 : 1) *
                      (measured.kernel == KernelKind::kWinograd ? 0.5 : 1);
        data.measured[device].push_back(measured);
      }
      data.operators.push_back(op);
    }
  }
  return data;
}

PhoneSchema two_devices() {
  PhoneSchema schema;
  schema.name = "synthetic";
  schema.devices = {{.name = "one", .maker = GpuMaker::kAdreno, .compute_units = 2},
                    {.name = "two", .maker = GpuMaker::kMali, .compute_units = 12}};
  return schema;
}

TEST(PhoneEvaluationTest, ReportsEveryFamilyTransferAndWholeNetworks) {
  const PhoneSchema schema = two_devices();
  const PhoneData data = synthetic(schema);
  EndToEnd whole(2);
  for (size_t row = 0; row < data.operators.size(); ++row) {
    for (size_t device = 0; device < 2; ++device) {
      double& sum = whole[device][data.operators[row].network];
      sum += data.measured[device][row].us;
      if (row % 12 == 0) sum += 100;  // what a network costs beside its operators
    }
  }
  PhoneEvaluationOptions options{.folds = 4, .transfer = {30}};
  options.boosting.trees = 40;
  int steps = 0;
  const auto reports = evaluate_phones(schema, data, &whole, options, [&steps] { ++steps; });
  ASSERT_TRUE(reports.ok()) << reports.status().to_string();
  EXPECT_EQ(steps, 8);
  ASSERT_EQ(reports->size(), 2u);
  for (const PhoneReport& report : *reports) {
    const FamilyErrors& all = report.families.front();
    EXPECT_EQ(all.family, "convolution");
    EXPECT_EQ(all.ours.count, data.operators.size());
    EXPECT_LT(all.ours.mape, 0.05);
    EXPECT_LE(all.true_kernel.mape, all.flops_only.mape);
    size_t parts = 0;
    for (const FamilyErrors& part : report.families) {
      if (!part.part_of.empty()) parts += part.ours.count;
    }
    EXPECT_EQ(parts, all.ours.count);
    EXPECT_GT(report.kernel_accuracy, 0.95);
    EXPECT_NEAR(report.end_to_end->from_measured.mape, 0, 1e-6);
    EXPECT_LT(report.end_to_end->ours.mape, 0.05);
    EXPECT_GT(report.end_to_end->plain_sum.mape, report.end_to_end->ours.mape);
    EXPECT_LT(report.transfer.at(30).all.mape, 0.25);
  }
}

TEST(PhoneEvaluationTest, RefusesMoreFoldsThanNetworks) {
  const PhoneSchema schema = two_devices();
  EXPECT_THAT(
      evaluate_phones(schema, synthetic(schema), nullptr, {.folds = 13}, [] {}).status().message(),
      HasSubstr("--folds"));
}

}  // namespace
}  // namespace tandem::predict

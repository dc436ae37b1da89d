// `vkformer bench`: its subcommands, and the table of all of them.
#include <memory>

#include "bench.h"
#include "bench_estimate.h"
#include "bench_models.h"
#include "vkformer/estimate.h"

namespace vkformer::cli {

namespace {

constexpr const char* kModel = "models/g2p-en";

// What the commands with a whole report share.
struct ReportOptions {
  ReportFiles files;
  std::vector<std::string> operators;  // empty: all
  int rounds = 9;                      // of an operator's rows
  ModelBenchOptions models;
  DecodeOptions decode;
};

Status add_operator_rows(const Device& device, const Roofline& roofline,
                         const ReportOptions& options, std::vector<BenchRow>& rows) {
  const std::vector<std::string> names =
      options.operators.empty() ? benchmark_operators() : options.operators;
  for (const std::string& name : names) {
    const Result<std::vector<OperatorTime>> times =
        benchmark_operator(device, name, options.rounds);
    if (!times) return times.error();
    for (const OperatorTime& time : *times) {
      BenchRow row;
      row.section = "operators";
      row.name = time.op + ", " + time.model;
      row.value = time.ms_median;
      row.unit = "ms";
      row.flops = time.flops;
      row.bytes = time.bytes;
      set_roofline_share(roofline, row);
      row.hash = time.hash;
      row.kernels = time.kernels;
      row.note = time.shapes;
      // A run cannot be shorter than its dispatches and barriers are.
      const double least = time.dispatches * (roofline.dispatch_us + roofline.barrier_us) * 1e-3;
      if (row.share < 1.0 / 3 && !time.reason.empty()) {
        row.note += "; " + time.reason;
      } else if (row.share < 1.0 / 3 && least > row.value / 3) {
        row.note += "; " + std::to_string(time.dispatches) + " dispatches alone take about " +
                    fixed(least, 3) + " ms";
      }
      rows.push_back(std::move(row));
    }
  }
  return {};
}

Status add_decode_rows(const CommonOptions& common, const Device& device,
                       const DecodeOptions& options, std::vector<BenchRow>& rows) {
  const Result<DecodeTime> time = measure_decode(common, device, options);
  if (!time) return time.error();
  const auto add = [&](const char* name, double value, const char* unit, const char* note) {
    BenchRow row;
    row.section = options.model + ", batch 1, greedy";
    row.name = name;
    row.value = value;
    row.unit = unit;
    row.note = note;
    rows.push_back(std::move(row));
  };
  add("processor time of the calling thread", time->cpu_us_per_token, "us/token", "");
  add("decoding", time->tokens_per_second, "tokens/s", "");
  add("start to first token, cold", time->start_cold_ms, "ms", "empty pipeline cache");
  add("start to first token, warm", time->start_warm_ms, "ms", "");
  return {};
}

enum class Part : uint8_t { kRoofline, kOperators, kModels, kAll };

Status add_parts(Part part, const CommonOptions& common, const Device& device,
                 const ReportOptions& options, BenchReport& report) {
  const Result<Roofline> roofline = measure_roofline(device);
  if (!roofline) return roofline.error();
  report.roofline = *roofline;
  add_roofline_rows(*roofline, report.rows);
  if (part == Part::kAll) {
    const Status products = add_gemm_rows(device, *roofline, report.rows);
    if (!products) return products;
  }
  if (part == Part::kOperators || part == Part::kAll) {
    const Status operators = add_operator_rows(device, *roofline, options, report.rows);
    if (!operators) return operators;
  }
  if (part == Part::kModels || part == Part::kAll) {
    const Status models = add_model_rows(common, device, *roofline, options.models, report.rows);
    if (!models) return models;
  }
  if (part != Part::kAll) return {};
  return add_decode_rows(common, device, options.decode, report.rows);
}

int run_report(Part part, const CommonOptions& common, const ReportOptions& options) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  BenchReport made = start_report(*device);
  {
    const Progress progress("measuring", common.progress());
    const Status added = add_parts(part, common, *device, options, made);
    if (!added) return report(added.error());
  }
  const Status written = emit_report(made, options.files);
  return written ? kExitOk : report(written.error());
}

CLI::App* add_bench(CLI::App& bench, CommandLine& line, const char* name, const char* text) {
  CLI::App* command = bench.add_subcommand(name, text);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  return command;
}

void add_bench_gemm(CLI::App& bench, CommandLine& line) {
  CLI::App* command = add_bench(bench, line, "gemm", "One matrix product y (m,n) = x (m,k) w.");
  const auto shape = std::make_shared<GemmBenchmark>();
  command->add_option("--m", shape->m, "rows")->check(CLI::Range(1, 65536));
  command->add_option("--n", shape->n, "output features")->check(CLI::Range(1, 65536));
  command->add_option("--k", shape->k, "input features")->check(CLI::Range(1, 65536));
  add_choice<WeightFormat>(
      *command, "--dtype", shape->weights, "how weights are stored",
      {"f32", "f16", "bf16", "q8", "q4", "q4m", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl",
       "mxfp4", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs"});
  add_choice<Precision>(*command, "--precision", shape->precision,
                        "arithmetic of products; with f32 and f16 sums are f32");
  command->add_option("--repeats", shape->repeats, "runs")->check(CLI::Range(1, 1000));
  add_examples(*command, "  vkformer bench gemm --m 145 --n 3072 --k 768 --dtype f32 --json\n");
  command->callback([&line, shape] {
    line.run = [&line, shape] { return run_bench_gemm(line.common, *shape); };
  });
}

void add_bench_encoder(CLI::App& bench, CommandLine& line) {
  CLI::App* command =
      add_bench(bench, line, "encoder", "A pre-norm encoder stack, by default of ViT-B/32 sizes.");
  const auto shape = std::make_shared<EncoderBenchmark>();
  command->add_option("--tokens", shape->tokens, "tokens")->check(CLI::Range(1, 65536));
  command->add_option("--layers", shape->layers, "layers")->check(CLI::Range(1, 256));
  command->add_option("--width", shape->width, "width")->check(CLI::Range(1, 65536));
  command->add_option("--heads", shape->heads, "heads")->check(CLI::Range(1, 1024));
  command->add_option("--ffn", shape->ffn, "feed-forward width")->check(CLI::Range(1, 65536));
  command->add_option("--repeats", shape->repeats, "runs")->check(CLI::Range(1, 1000));
  add_examples(*command, "  vkformer bench encoder --tokens 145 --json\n");
  command->callback([&line, shape] {
    line.run = [&line, shape] { return run_bench_encoder(line.common, *shape); };
  });
}

std::shared_ptr<DecodeOptions> add_decode_options(CLI::App& command) {
  auto options = std::make_shared<DecodeOptions>();
  options->model = kModel;
  options->texts = {"attention", "is", "all", "you", "need"};
  command.add_option("--seconds", options->seconds, "time to measure")->check(CLI::Range(1, 600));
  add_model_options(command, options->load);
  return options;
}

void add_bench_decode(CLI::App& bench, CommandLine& line) {
  CLI::App* command = add_bench(bench, line, "decode",
                                "Decoding at batch 1: CPU time, speed, time to the first token.");
  const auto options = add_decode_options(*command);
  add_model_argument(*command, line, options->model);
  command->add_option("TEXT", options->texts, "inputs; some English words if not given");
  command->add_flag("--start-only", options->start_only,
                    "generate one token and print the milliseconds since the process began");
  add_examples(*command,
               "  vkformer bench decode models/g2p-en\n"
               "  vkformer bench decode models/g2p-en --json --device lavapipe\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_bench_decode(line.common, *options); };
  });
}

// A command whose outcome is a report.
CLI::App* add_report(CLI::App& bench, CommandLine& line, const char* name, const char* text,
                     const std::shared_ptr<ReportOptions>& options) {
  CLI::App* command = bench.add_subcommand(name, text);
  command->add_flag("-q,--quiet", line.common.quiet,
                    "no progress and no notes on stderr; errors remain");
  CLI::Option* json = command->add_option("--json", options->files.json,
                                          "write JSON to FILE, or print it where none is named");
  json->expected(0, 1)->type_name("[FILE]");
  add_file_option(*command, "--csv", options->files.csv, "write CSV to FILE");
  add_device_options(*command, line.common);
  command->parse_complete_callback([json, options] {
    options->files.print_json = json->count() > 0 && options->files.json.empty();
  });
  return command;
}

void add_operator_options(CLI::App& command, ReportOptions& options) {
  command.add_option("--rounds", options.rounds, "runs of each row, by turns; the median counts")
      ->check(CLI::Range(1, 10000));
}

void add_model_bench_options(CLI::App& command, ModelBenchOptions& options) {
  add_model_options(command, options.load);
  add_cache_option(command, options.cache);
  command.add_option("--batch", options.batch, "inputs at once, instead of the model's own runs")
      ->check(CLI::Range(0, 65536));
  command.add_option("--tokens", options.tokens, "tokens of each input, likewise")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--new-tokens", options.new_tokens, "tokens to generate; 0: a full pass")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--rounds", options.rounds, "runs; the median counts")
      ->check(CLI::Range(1, 1000));
  command.add_flag("--in-process", options.in_process,
                   "all models in one process; memory peaks then grow");
}

void add_estimate_option(CLI::App& command, std::string& chip) {
  std::string known;
  for (const EstimatedGpu& gpu : estimated_gpus()) known += gpu.chip + ", ";
  command
      .add_option("--estimate", chip,
                  "measure nothing, but estimate the models on a GPU that need not be there: " +
                      known + "or device, for this one by its measured roofline")
      ->type_name("CHIP");
}

void add_bench_all(CLI::App& bench, CommandLine& line) {
  const auto options = std::make_shared<ReportOptions>();
  options->decode.model = kModel;
  options->decode.texts = {"attention", "is", "all", "you", "need"};
  CLI::App* command = add_report(
      bench, line, "all", "Everything, as a table, beside OpenBLAS where it is found.", options);
  command->add_option("--model", options->decode.model,
                      "directory for the time to the first token, models/g2p-en if not given");
  command->add_option("--seconds", options->decode.seconds, "time to decode with it")
      ->check(CLI::Range(1, 600));
  add_operator_options(*command, *options);
  add_examples(*command,
               "  OPENBLAS_CORETYPE=Haswell vkformer bench all --json all.json --csv all.csv\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_report(Part::kAll, line.common, *options); };
  });
}

void add_bench_parts(CLI::App& bench, CommandLine& line) {
  const auto roofline = std::make_shared<ReportOptions>();
  CLI::App* command =
      add_report(bench, line, "roofline", "What the device can do at best, measured.", roofline);
  add_examples(*command, "  vkformer bench roofline --json\n");
  command->callback([&line, roofline] {
    line.run = [&line, roofline] { return run_report(Part::kRoofline, line.common, *roofline); };
  });

  const auto operators = std::make_shared<ReportOptions>();
  command = add_report(bench, line, "operators",
                       "Every operator at the sizes of real models, or those named.", operators);
  command->add_option("NAME", operators->operators, "operators")
      ->check(CLI::IsMember(benchmark_operators()));
  add_operator_options(*command, *operators);
  add_examples(*command,
               "  vkformer bench operators --json operators.json --csv operators.csv\n"
               "  vkformer bench operators matmul attention --rounds 21\n");
  command->callback([&line, operators] {
    line.run = [&line, operators] { return run_report(Part::kOperators, line.common, *operators); };
  });

  const auto models = std::make_shared<ReportOptions>();
  command = add_report(bench, line, "models",
                       "Whole models with random weights, made from a seed, or model directories.",
                       models);
  const auto estimate = std::make_shared<std::string>();
  add_estimate_option(*command, *estimate);
  command->add_option("MODEL", models->models.names,
                      "bert-base, gpt2, llama-134m, vit-b32-384, t5-small, bart-base, marian, "
                      "whisper-tiny, or a directory; all of the former if none is named");
  add_model_bench_options(*command, models->models);
  add_examples(*command,
               "  vkformer bench models --json models.json\n"
               "  vkformer bench models llama-134m --weights f16\n"
               "  vkformer bench models DIR --batch 8 --tokens 64\n"
               "  vkformer bench models gpt2 --estimate m1\n");
  command->callback([&line, models, estimate] {
    line.run = [&line, models, estimate] {
      if (estimate->empty()) return run_report(Part::kModels, line.common, *models);
      return run_bench_estimate(line.common, *estimate, models->models, models->files);
    };
  });
}

void add_bench_compare(CLI::App& bench, CommandLine& line) {
  CLI::App* command = bench.add_subcommand(
      "compare", "Ratios of speed between two reports, row by row, the slowest change first.");
  const auto options = std::make_shared<CompareReportsOptions>();
  add_file_option(*command, "BEFORE", options->before, "file that --json wrote")->required();
  add_file_option(*command, "AFTER", options->after, "file that --json wrote")->required();
  command
      ->add_option("--fail-below", options->fail_below,
                   "exit with 1 where AFTER has less than this share of BEFORE's speed")
      ->check(CLI::Range(0.0, 1000.0));
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer bench compare before.json after.json\n"
               "  vkformer bench compare before.json after.json --fail-below 0.9\n");
  command->callback([&line, options] {
    line.run = [&line, options] {
      options->json = line.common.json;
      return compare_reports(*options);
    };
  });
}

}  // namespace

void add_bench_command(CLI::App& app, CommandLine& line) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure the device, every operator, and whole models.");
  bench->require_subcommand(0, 1);
  const auto estimate = std::make_shared<std::string>();
  add_estimate_option(*bench, *estimate);
  bench->callback([bench, &line, estimate] {
    const bool alone = bench->get_subcommands().empty();
    if (!alone && estimate->empty()) return;
    if (!alone) throw CLI::ValidationError("--estimate", "is used alone, or after `bench models`");
    if (estimate->empty()) throw CLI::RequiredError("A subcommand, or --estimate CHIP");
    line.run = [&line, estimate] { return run_bench_estimate(line.common, *estimate, {}, {}); };
  });
  add_examples(*bench,
               "  vkformer bench all --json all.json\n"
               "  vkformer bench operators matmul\n"
               "  vkformer bench models bert-base\n"
               "  vkformer bench --estimate navi31\n"
               "  vkformer bench compare before.json after.json\n"
               "  vkformer bench gemm --m 145 --n 3072 --k 768 --dtype f32 --json\n"
               "  vkformer bench decode models/g2p-en\n");
  add_bench_parts(*bench, line);
  add_bench_gemm(*bench, line);
  add_bench_encoder(*bench, line);
  add_bench_decode(*bench, line);
  add_bench_all(*bench, line);
  add_bench_compare(*bench, line);
}

}  // namespace vkformer::cli

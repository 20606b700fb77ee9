"""What `import caffe` means, what a process keeps, and which names there are."""

from __future__ import annotations

import logging
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from astride import pycaffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers import LAYERS

NAMES = """
Net SGDSolver NesterovSolver AdaGradSolver RMSPropSolver AdaDeltaSolver AdamSolver NCCL Timer init_log log set_mode_cpu
set_mode_gpu set_device Layer get_solver layer_type_list set_random_seed solver_count set_solver_count solver_rank
set_solver_rank set_multiprocess has_nccl __version__ TRAIN TEST Classifier Detector io layers params NetSpec to_proto
net_spec coord_map draw proto
"""


def test_every_name_of_caffes_is_there() -> None:
    assert [name for name in NAMES.split() if not hasattr(pycaffe, name)] == []
    assert all(hasattr(pycaffe, name) for name in pycaffe.__all__)


def test_imports_in_every_form(installed: Path) -> None:
    (installed / "script.py").write_text(
        "import caffe\nimport caffe.io\nimport caffe.draw as draw\nimport caffe.proto.caffe_pb2 as pb\n"
        "from caffe import layers as L, params as P, to_proto\nfrom caffe.proto import caffe_pb2\n"
        "from caffe.coord_map import crop\nfrom caffe.io import load_image\nfrom caffe.pycaffe import Net\n"
        "from caffe._caffe import layer_type_list\nfrom caffe.net_spec import NetSpec\nfrom caffe.classifier import Classifier\n"
        "assert caffe.io.load_image is load_image and pb is caffe_pb2 and caffe.Net is Net and caffe.draw is draw\n"
    )
    import script  # type: ignore[import-not-found]

    assert script.caffe is pycaffe and script.crop is pycaffe.coord_map.crop


def test_install_and_uninstall() -> None:
    assert "caffe" not in sys.modules
    pycaffe.install()
    pycaffe.install()
    assert sys.modules["caffe"] is pycaffe
    pycaffe.uninstall()
    assert not [name for name in sys.modules if name == "caffe" or name.startswith("caffe.")]


def test_another_caffe_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("caffe")
    monkeypatch.setitem(sys.modules, "caffe", other)
    with pytest.raises(ArgumentError, match="another caffe is imported already"):
        pycaffe.install()
    pycaffe.install(replace=False)
    pycaffe.uninstall()
    assert sys.modules["caffe"] is other


def test_a_caffe_on_the_path_is_left_alone_where_asked(folder: Path) -> None:
    (folder / "caffe.py").write_text("")
    pycaffe.install(replace=False)
    assert "caffe" not in sys.modules


def test_a_mere_folder_of_that_name_is_no_caffe(folder: Path) -> None:
    """Many work above a checkout of Caffe's."""
    (folder / "caffe").mkdir()
    try:
        pycaffe.install(replace=False)
        assert sys.modules["caffe"] is pycaffe
    finally:
        pycaffe.uninstall()


def test_astride_does_not_import_it() -> None:
    code = "import sys, astride; assert 'astride.pycaffe' not in sys.modules; astride.pycaffe.Net; print('late')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "late\n"


def test_text_format_is_where_scripts_look_for_it() -> None:
    """`import google.protobuf as pb2; pb2.text_format` worked with generated code, which imported it."""
    code = "import astride.pycaffe, google.protobuf as pb2; print(pb2.text_format.Merge.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "Merge\n"


# The process


def test_modes_and_devices_are_accepted(caplog: pytest.LogCaptureFixture) -> None:
    pycaffe.set_mode_cpu()
    with caplog.at_level(logging.INFO, logger="astride.pycaffe"):
        pycaffe.set_mode_gpu()
        pycaffe.set_device(0)
    pycaffe.set_multiprocess(True)
    pycaffe.set_solver_count(2)
    pycaffe.set_solver_rank(1)
    assert (pycaffe.solver_count(), pycaffe.solver_rank(), pycaffe.has_nccl()) == (2, 1, False)
    pycaffe.set_solver_count(1)
    pycaffe.set_solver_rank(0)
    for call in (lambda: pycaffe.NCCL(None, None), pycaffe.NCCL.new_uid):
        with pytest.raises(UnsupportedError, match="no NCCL"):
            call()


def test_layer_types() -> None:
    types_ = pycaffe.layer_type_list()
    assert set(types_) == set(LAYERS) and types_ == sorted(types_) and "Convolution" in types_


def test_the_timer_counts_milliseconds() -> None:
    timer = pycaffe.Timer()
    timer.start()
    assert timer.ms >= 0
    timer.stop()
    stopped = timer.ms
    assert stopped == timer.ms >= 0


def test_the_log_goes_to_stderr() -> None:
    code = "from astride import pycaffe as c; c.log('no'); c.init_log(0, True); c.log('yes'); c.init_log(2); c.log('no')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("] yes\n") and done.stderr.startswith("I") and done.stderr.count("\n") == 1


def test_the_seed_repeats_fillers(folder: Path) -> None:
    Path("net.prototxt").write_text(
        'layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 1 dim: 9 } } }'
        'layer { name: "i" type: "InnerProduct" bottom: "d" top: "i"'
        '  inner_product_param { num_output: 9 weight_filler { type: "gaussian" } } }'
    )

    def drawn() -> np.ndarray:
        return pycaffe.Net("net.prototxt", pycaffe.TEST).params["i"][0].data

    pycaffe.set_random_seed(5)
    first, second = drawn(), drawn()
    pycaffe.set_random_seed(5)
    assert (drawn() == first).all() and not (first == second).all()
    with pytest.raises(RuntimeError, match="a seed has 32 bits"):
        pycaffe.set_random_seed(-1)

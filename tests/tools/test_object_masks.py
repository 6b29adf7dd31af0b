from measure_looking import object_masks


def test_the_box_of_each_object_is_a_mask_with_both_ends_inside(tmp_path):
    (tmp_path / "tiny-imagenet-200/val").mkdir(parents=True)
    lines = "val_0.JPEG\tn01\t0\t0\t9\t9\nval_1.JPEG\tn02\t5\t60\t7\t63\n"
    (tmp_path / "tiny-imagenet-200/val/val_annotations.txt").write_text(lines)
    first, second = object_masks(tmp_path)
    assert first.shape == (64, 64)
    assert first[:10, :10].all()
    assert first.sum() == 100
    rows, columns = second.nonzero().T.tolist()
    assert rows == [60] * 3 + [61] * 3 + [62] * 3 + [63] * 3
    assert set(columns) == {5, 6, 7}

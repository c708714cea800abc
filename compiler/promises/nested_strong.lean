/-! ## The promise

Decisions `x`, data `s` and losses `f` of any sequence; `hf` is the strong convexity of the losses at the comparator `u`, `hconvex` the
convexity of the constraints, `hmem` and `hproj` the rule: `x (t + 1)` is the point of the domain cut by all constraints seen that is
nearest to `x t - c / (t + 1) • g t`. -/

theorem regret (x g : ℕ → Decision) (s : ℕ → Data) (f : ℕ → Decision → ℝ) (u : Decision)
    (hu : u ∈ domain) (hfeasible : ∀ t k, excess k u (s t) ≤ 0)
    (hs : ∀ t i, s t i ∈ Set.Icc (least i) (most i)) (hx0 : x 0 ∈ domain)
    (hg : ∀ t i, g t i = gradient (x t) (s t) i)
    (hf : ∀ t, f t (x t) - f t u ≤ inner ℝ (g t) (x t - u) - ‖x t - u‖ ^ 2 / (2 * c))
    (hconvex : ∀ t, Convex ℝ (seen s t)) (hmem : ∀ t, x (t + 1) ∈ seen s t)
    (hproj : ∀ t : ℕ, ‖x t - (((t : ℝ) + 1) / c)⁻¹ • g t - x (t + 1)‖
      = ⨅ w : seen s t, ‖x t - (((t : ℝ) + 1) / c)⁻¹ • g t - w‖) :
    ∑ t ∈ range T, (f t (x t) - f t u) ≤ R := by
  have hx : ∀ t, x t ∈ domain := fun t => by
    cases t with
    | zero => exact hx0
    | succ t => exact (hmem t).1
  have hG : ∀ t, ‖g t‖ ≤ G := fun t =>
    norm_le_of_entries (g t) slope G G_nonneg (fun i => by rw [hg t i]; exact entries ⟨hx t, hs t⟩ i) slope_le_G
  have hL : (T : ℝ) ≤ Real.exp L := rounds_le_series.trans (Real.sum_le_exp_of_nonneg L_nonneg _)
  have main := regret_of_strong_steps (seen s) hconvex x g u c_pos hmem hproj
    (fun t => ⟨hu, fun q _ k => hfeasible q k⟩) hG T (by norm_num [T]) hL
  exact ((sum_le_sum fun t (_ : t ∈ range T) => hf t).trans main).trans total_le_R

end Promise
